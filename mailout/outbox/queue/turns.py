"""Whose turn it is: urgent before bulk, then the company that sent longest ago, then the oldest request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mailout.outbox.queue.mailout import Mailout


def in_turn(waiting: Sequence[Mailout], last_turns: Mapping[str, float]) -> Sequence[Mailout]:
    """In the order in which they would go, one turn after the other: companies alternate."""
    turns, remaining, ordered = dict(last_turns), list(waiting), list[Mailout]()
    latest = max(turns.values(), default=0.0)
    while remaining:
        chosen = min(remaining, key=lambda mailout: _place(mailout, turns))
        remaining.remove(chosen)
        ordered.append(chosen)
        latest += 1.0
        turns[chosen.company_id] = latest
    return ordered


def next_turn(waiting: Sequence[Mailout], last_turns: Mapping[str, float]) -> Mailout | None:
    """The one that goes now. Asked again after each time slice, nobody waits for a long one's end."""
    return min(waiting, key=lambda mailout: _place(mailout, last_turns), default=None)


def _place(mailout: Mailout, turns: Mapping[str, float]) -> tuple[int, float, float, str]:
    asked = mailout.created_at if mailout.scheduled_at is None else mailout.scheduled_at
    return (-mailout.priority, turns.get(mailout.company_id, 0.0), asked, mailout.id)
