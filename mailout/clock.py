"""Time, handed in. Moments are seconds since the epoch; only calendars and people need more."""

from __future__ import annotations

import time
from typing import Protocol


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)


class Clock(Protocol):
    """Seconds since the epoch, a clock that never goes back, and a way to wait."""

    def now(self) -> float: ...
    def monotonic(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...
