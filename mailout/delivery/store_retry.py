"""A store that is away delays, and ends nothing: wait for it, and say so."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from mailout.clock import Clock
from mailout.errors import HomeUnwritable, StoreUnavailable

log = logging.getLogger("mailout.sender")

T = TypeVar("T")

PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)


def pause_after(tries: int) -> float:
    """How long to wait before asking once more."""
    return PAUSES[max(0, min(tries, len(PAUSES)) - 1)]


def pause(clock: Clock, stop: threading.Event, seconds: float) -> None:
    """Sleep, but hear a stop within half a second."""
    until = clock.monotonic() + seconds
    while not stop.is_set():
        left = until - clock.monotonic()
        if left <= 0:
            return
        clock.sleep(min(left, 0.5))


def wait_for_store(ask: Callable[[], T], clock: Clock) -> T:
    """Its answer, whenever it comes. Only for what may be asked twice."""
    tries = 0
    while True:
        try:
            answer = ask()
        except HomeUnwritable:
            raise  # a person has to see to it
        except StoreUnavailable as error:
            if not tries:
                log.warning("waiting for the store: %s", error)
            tries += 1
            clock.sleep(pause_after(tries))
        else:
            if tries:
                log.warning("the store is back after %d tries", tries)
            return answer
