"""Time, handed in. Moments are seconds since the epoch; only calendars and people need more."""

from __future__ import annotations

import time


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)
