"""The call pool: what the sender hears of the calls that run beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from mailout.outbox.delivery.call_pool import (
    CallPool,
    Group,
    PreparedCall,
    ThreadCallPool,
    Work,
)
from mailout.outbox.delivery.protocol import Attempt, Claimed

LONG = 600.0  # nobody waits so long: it would mean that the news was missed


class Waiting:
    """Calls that end when they are let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.allowed = 1

    def calls_allowed(self) -> int:
        return self.allowed

    def prepare(self, rows: Sequence[Claimed]) -> PreparedCall:
        return PreparedCall((), rows)

    def wait_for_slot(self, prepared: PreparedCall, start: float | None) -> Callable[[], None]:
        def call() -> None:
            self.go.wait(LONG)

        return call


def test_a_call_that_ended_while_the_sender_was_busy_is_news() -> None:
    """Else the last step of every mailout waits a second for a call that has ended already."""
    work = Waiting()
    pool = ThreadCallPool(work)
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
    pool = ThreadCallPool(work)
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

    def wait_for_slot(self, prepared: PreparedCall, start: float | None) -> Callable[[], None] | None:
        if start is not None and start < self.since:
            return None
        return lambda: self.called.append((start, prepared.rows[0].email))


def row(email: str) -> Claimed:
    return Claimed(Attempt(email, 1), 1, 1, email, "content", None, "default", None, {}, None)


@pytest.mark.parametrize("kind", [CallPool, ThreadCallPool])
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


class Counting(Waiting):
    """Notes who begins, and how many calls are in flight then."""

    def __init__(self) -> None:
        super().__init__()
        self.began: list[str] = []
        self.changed = threading.Condition()
        self.ended = 0

    def wait_for_slot(self, prepared: PreparedCall, start: float | None) -> Callable[[], None]:
        with self.changed:
            self.began.append(prepared.rows[0].email)
            before = self.ended
            self.changed.notify_all()

        def call() -> None:
            with self.changed:
                self.changed.wait_for(lambda: self.ended > before, LONG)

        return call

    def end_one(self) -> None:
        """All in flight look up; whoever began is let go."""
        with self.changed:
            self.ended += 1
            self.changed.notify_all()

    def wait_for(self, count: int) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: len(self.began) >= count, 300.0)


def test_no_more_calls_are_in_flight_than_are_allowed_for_now() -> None:
    """A provider that hangs would put every call beyond them in doubt."""
    work = Counting()
    pool = ThreadCallPool(work)
    pool.offer([Group([row(f"p{n:02}")], None) for n in range(20)])
    assert work.wait_for(1)
    work.allowed = 6  # learned from the first answer
    work.end_one()
    assert work.wait_for(7)
    assert pool.held() == 13
    work.allowed = 1  # one of them got no answer
    work.end_one()
    assert work.wait_for(8)
    assert pool.held() == 12
    pool.take_back()
    work.end_one()
    assert pool.join(LONG)
    assert work.began == [f"p{n:02}" for n in range(8)]  # in their order, however many there are at a time
    pool.close()
