"""Asking again after a failure that may pass: the loop, once for everybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mailout.clock import Clock

T = TypeVar("T")


def retried(call: Callable[[], T], pause_after: Callable[[Exception, int], float | None], clock: Clock) -> T:
    """What `call` returns. After a failure `pause_after(error, attempts)` says how many seconds to wait
    before the next attempt; None: the error is raised."""
    attempts = 0
    while True:
        attempts += 1
        try:
            return call()
        except Exception as error:
            pause = pause_after(error, attempts)
            if pause is None:
                raise
        clock.sleep(pause)
