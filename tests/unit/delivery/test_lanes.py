"""Lanes: what the sender hears of the calls that run beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from mailout.delivery.lanes import Group, ThreadLanes

LONG = 600.0  # nobody waits so long: it would mean that the news was missed


class Waiting:
    """Calls that end when they are let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def prepare(self, group: Group) -> Callable[[], None]:
        def call() -> None:
            self.go.wait(LONG)

        return call


def test_a_call_that_ended_while_the_sender_was_busy_is_news() -> None:
    """Else the last step of every mailout waits a second for a call that has ended already."""
    work = Waiting()
    lanes = ThreadLanes(1, work)
    lanes.offer([Group((), None)])
    lanes.look()
    work.go.set()
    assert lanes.join(LONG)  # it has ended; the sender was in a step meanwhile
    waiter = threading.Thread(target=lanes.wait_for_news, args=(LONG,), daemon=True)
    waiter.start()
    waiter.join(30.0)
    assert not waiter.is_alive()
    lanes.close()


def test_what_the_sender_has_looked_at_is_no_news() -> None:
    """Else it would ask the store again and again while a long call runs."""
    work = Waiting()
    work.go.set()
    lanes = ThreadLanes(1, work)
    lanes.offer([Group((), None)])
    assert lanes.join(LONG)
    lanes.look()
    waiter = threading.Thread(target=lanes.wait_for_news, args=(LONG,), daemon=True)
    waiter.start()
    waiter.join(0.05)
    assert waiter.is_alive()
    lanes.offer([Group((), None)])
    waiter.join(30.0)
    assert not waiter.is_alive()
    lanes.close()
