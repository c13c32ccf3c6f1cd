"""Time, handed in. Moments are seconds since the epoch; only calendars and people need more."""

from __future__ import annotations

import time
from datetime import UTC, datetime, tzinfo
from typing import Any, Protocol

WAKES_LATE = 0.0003
"""By how much the kernel's timers may be late. At fifty sends a second each interval has a tenth of a
millisecond to make lateness up: if every send woke up late, that would add up until a slot is lost."""
YEAR_3000 = 32_503_680_000.0
"""From here on a time is a mistake, or means “never”; soon after, calendars end."""


_OFF_LINUX = getattr(time, "CLOCK_MONOTONIC_RAW", time.CLOCK_MONOTONIC)  # macOS; others
_MONOTONIC: int = getattr(time, "CLOCK_BOOTTIME", _OFF_LINUX)


def monotonic() -> float:
    """Never goes back, and counts the time in which the machine slept: `time.monotonic` leaves it out."""
    return time.clock_gettime(_MONOTONIC)


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return monotonic()

    def sleep(self, seconds: float) -> None:
        """Wakes on time: the last moment is spent awake."""
        until = monotonic() + seconds
        if seconds > WAKES_LATE:
            time.sleep(seconds - WAKES_LATE)
        while monotonic() < until:
            time.sleep(0)


class Clock(Protocol):
    """Seconds since the epoch, a clock that never goes back, and a way to wait."""

    def now(self) -> float: ...
    def monotonic(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...


def timestamp_of(written: Any, zone: tzinfo = UTC) -> float | None:
    """Of a time in ISO 8601; one that does not say its zone is in this one. None: it is no time."""
    try:
        moment = datetime.fromisoformat(written)
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
