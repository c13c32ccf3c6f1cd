"""Asking again after a failure that may pass: the loop, once for everybody."""

from __future__ import annotations

from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import TypeVar

from mailout.base.clock import Clock

T = TypeVar("T")

A_DAY = 86_400.0
"""More than any server means when it asks for time."""


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


def retry_after_seconds(header: str | None, now: float) -> float | None:
    """`Retry-After` as seconds: it may be a number or a date. None: it says nothing."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - now
        except ValueError:
            return None
    return min(max(0.0, seconds), A_DAY)
