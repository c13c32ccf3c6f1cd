"""Clocks for tests, so that nothing depends on when they are run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from mailout.base.clock import SystemClock

NOON = 1_794_830_400.0
"""2026-11-16T12:00:00Z, a Monday: the start of a minute, an hour and half a day."""


@dataclass
class FakeClock:
    """Fulfils `Clock`, and waits nowhere. Sleeping moves both hands; setting the time moves one."""

    wall: float = NOON
    steady: float = 1000.0

    def now(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            self.wall += seconds
            self.steady += seconds


class FromNoon(SystemClock):
    """Goes like the machine's, from noon on: no hour and no day ends while a test is in it."""

    def __init__(self) -> None:
        self._ahead = NOON - super().now()

    def now(self) -> float:
        return super().now() + self._ahead


def zone_at_noon() -> str:
    """For processes, which have the machine's clock: a time zone in which the day is far from its end."""
    return f"Etc/GMT{datetime.now(UTC).hour - 12:+d}"
