"""Time, handed in. Moments are seconds since the epoch; only calendars and people need more."""

from __future__ import annotations

import time
from datetime import UTC, datetime, tzinfo
from typing import Any, Protocol


def timestamp_of(written: Any, zone: tzinfo = UTC) -> float | None:
    """Of a time in ISO 8601; one that does not say its zone is in this one. None: it is no time."""
    try:
        moment = datetime.fromisoformat(written)
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


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
