"""The call pool: what the sender hears of the calls that run beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from mailout.outbox.delivery.call_pool import CallPool, Group, InlineCallPool, Prepared, ThreadCallPool, Work
from mailout.outbox.delivery.protocol import Attempt, Claimed

LONG = 600.0  # nobody waits so long: it would mean that the news was missed


class Waiting:
    """Calls that end when they are let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def prepare(self, rows: Sequence[Claimed]) -> Prepared:
        return Prepared((), rows)

    def wait_for_slot(self, prepared: Prepared, start: float | None) -> Callable[[], None]:
        def call() -> None:
            self.go.wait(LONG)

        return call


def test_a_call_that_ended_while_the_sender_was_busy_is_news() -> None:
    """Else the last step of every mailout waits a second for a call that has ended already."""
    work = Waiting()
    pool = ThreadCallPool(1, work)
    pool.offer([Group((), None)])
    pool.look()
    work.go.set()
    assert pool.join(LONG)  # it has ended; the sender was in a step meanwhile
    waiter = threading.Thread(target=pool.wait_for_news, args=(LONG,), daemon=True)
    waiter.start()
    waiter.join(300.0)
    assert not waiter.is_alive()
    pool.close()


def test_what_the_sender_has_looked_at_is_no_news() -> None:
    """Else it would ask the store again and again while a long call runs."""
    work = Waiting()
    work.go.set()
    pool = ThreadCallPool(1, work)
    pool.offer([Group((), None)])
    assert pool.join(LONG)
    pool.look()
    waiter = threading.Thread(target=pool.wait_for_news, args=(LONG,), daemon=True)
    waiter.start()
    waiter.join(0.05)
    assert waiter.is_alive()
    pool.offer([Group((), None)])
    waiter.join(300.0)
    assert not waiter.is_alive()
    pool.close()


class Busy(Waiting):
    """Slots before a certain time are lost."""

    def __init__(self, since: float) -> None:
        super().__init__()
        self.since = since
        self.called: list[tuple[float | None, str]] = []

    def wait_for_slot(self, prepared: Prepared, start: float | None) -> Callable[[], None] | None:
        if start is not None and start < self.since:
            return None
        return lambda: self.called.append((start, prepared.rows[0].email))


def row(email: str) -> Claimed:
    return Claimed(Attempt(email, 1), 1, 1, email, "content", None, "default", None, {}, None)


@pytest.mark.parametrize("kind", [InlineCallPool, lambda work: ThreadCallPool(1, work)])
def test_a_lost_slot_moves_everybody_to_the_next_one(kind: Callable[[Work], CallPool]) -> None:
    """In their order; who has no slot any more waits for the next ones, before those who come with them."""
    work = Busy(since=3.0)
    pool = kind(work)
    pool.offer([Group([row(name)], float(slot)) for slot, name in enumerate("abcd", 1)])
    assert pool.join(LONG)
    assert work.called == [(3.0, "a"), (4.0, "b")]
    assert pool.held() == 0
    pool.offer([Group([row("e")], 5.0), Group([row("f")], 6.0)])
    assert pool.join(LONG)
    assert work.called[2:] == [(5.0, "c"), (6.0, "d")]
    assert [claimed.email for claimed in pool.take_slotless()] == ["e", "f"]
    assert not pool.take_back()
    pool.close()
