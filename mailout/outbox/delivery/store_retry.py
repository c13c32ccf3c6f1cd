"""A store that does not answer delays sending and ends nothing: wait for it, and say so."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from mailout.base.clock import Clock
from mailout.base.errors import HomeUnwritable, StoreUnavailable
from mailout.base.retries import retried

log = logging.getLogger("mailout.sender")

T = TypeVar("T")

PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)
TOLD_EVERY = 60
"""Tries: about five minutes."""


def pause_after(tries: int) -> float:
    """How long to wait before asking once more."""
    return PAUSES[max(0, min(tries, len(PAUSES)) - 1)]


def pause(clock: Clock, stop: threading.Event, seconds: float) -> None:
    """Sleep, but hear a stop within half a second."""
    until = clock.monotonic() + seconds
    while not stop.is_set():
        remaining = until - clock.monotonic()
        if remaining <= 0:
            return
        clock.sleep(min(remaining, 0.5))


def wait_for_store(ask: Callable[[], T], clock: Clock) -> T:
    """Its answer, whenever it comes. Only for what may be asked twice."""
    failed = 0

    def pause_if_away(error: Exception, tries: int) -> float | None:
        nonlocal failed
        if not isinstance(error, StoreUnavailable) or isinstance(error, HomeUnwritable):
            return None  # a person has to see to a home that cannot be written to
        if failed % TOLD_EVERY == 0:
            log.warning("waiting for the store: %s", error)
        failed = tries
        return pause_after(tries)

    answer = retried(ask, pause_if_away, clock)
    if failed:
        log.warning("the store is back after %d tries", failed)
    return answer
