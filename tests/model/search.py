"""Walks through everything that can happen and says, with the story that leads there, what must not."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from mailout.outbox.delivery.states import State
from tests.model.world import ALL_RULES, Rules, World, beginning, canonical, successors


@dataclass(frozen=True)
class Found:
    """How many states there are, and the shortest way to one that must not be (if there is one)."""

    states: int
    wrong: str | None = None
    steps: tuple[str, ...] = ()


def search(messages: int, senders: int, faults: int, rules: Rules = ALL_RULES) -> Found:
    """Breadth first, so that the story is the shortest one."""
    numbers = {canonical(beginning(messages, senders, faults)): 0}
    worlds = list(numbers)
    came_from: list[tuple[int, str]] = [(0, "")]
    before: list[list[int]] = [[]]
    for here, world in enumerate(worlds):  # it grows while we walk
        if wrong := _wrong(world):
            return Found(len(worlds), wrong, _story(came_from, here))
        for name, after in successors(world, rules):
            after = canonical(after)
            there = numbers.setdefault(after, len(worlds))
            if there == len(worlds):
                worlds.append(after)
                came_from.append((here, name))
                before.append([])
            before[there].append(here)
    stuck = _cannot_end_well(worlds, before)
    if stuck is not None:
        return Found(len(worlds), "a message can no longer be sent", _story(came_from, stuck))
    return Found(len(worlds))


def _wrong(world: World) -> str | None:
    if any(times > 1 for times in world.accepted):
        return "a message was accepted twice"
    for row, times in zip(world.store.rows, world.accepted, strict=True):
        if row.state is State.SENT and not times:
            return "a message counts as sent that nobody accepted"
    if world.store.ledger != world.store.recount():
        return "the ledger does not balance"
    return None


def _cannot_end_well(worlds: list[World], before: list[list[int]]) -> int | None:
    """The first state from which no way leads to "everything was sent": something would be lost there."""
    good = [all(row.state is State.SENT for row in world.store.rows) for world in worlds]
    waiting = deque(i for i, is_good in enumerate(good) if is_good)
    while waiting:
        for earlier in before[waiting.popleft()]:
            if not good[earlier]:
                good[earlier] = True
                waiting.append(earlier)
    return good.index(False) if False in good else None


def _story(came_from: list[tuple[int, str]], here: int) -> tuple[str, ...]:
    steps = []
    while here:
        here, name = came_from[here]
        steps.append(name)
    return tuple(reversed(steps))
