"""What an operator has changed on Prefect's pages, told from what the server only says in another order."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from cli.processes.shipped import NO_DEPLOYMENT, Server, Shipped

EVENTS = ("mailout.run.alive", "mailout.run.ended", "prefect.flow-run.Running")
PIECE = "trigger runs"

UNSORTED = {EVENTS[:2]: "2b5474ee", EVENTS[1::-1]: "a4e789c5"}
"""What 0.1.0 noted of both orders."""


def server(expect: tuple[str, ...]) -> Server:
    trigger = {"id": "1", "expect": list(expect), "threshold": 1}
    automation = {"name": "runs", "description": "", "trigger": trigger, "actions": [{"type": "a"}]}
    return Server({}, {"runs": automation})


def shipped(expect: tuple[str, ...]) -> Shipped:
    made = Shipped()
    made.note(NO_DEPLOYMENT, PIECE, {}, server(expect).shows(NO_DEPLOYMENT, PIECE))
    return made


@pytest.mark.parametrize("order", list(permutations(EVENTS)))
def test_another_order_is_nobodys_change(order: tuple[str, ...]) -> None:
    """Prefect keeps `expect` as a set: each start of its server says it in another order."""
    assert list(shipped(EVENTS).differences(server(order))) == []


def test_one_event_less_is_a_change() -> None:
    assert list(shipped(EVENTS).differences(server(EVENTS[:2]))) == [PIECE]


@pytest.mark.parametrize("order", list(permutations(EVENTS[:2])))
def test_what_an_earlier_version_noted_is_known_again(order: tuple[str, str]) -> None:
    """It hashed the order that it saw."""
    noted: dict[str, Any] = {NO_DEPLOYMENT: {PIECE: "00000000" + UNSORTED[order]}}
    assert list(Shipped(noted).differences(server(EVENTS[:2]))) == []
