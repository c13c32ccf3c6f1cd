"""A clock that tests set: nothing here waits, and nothing depends on when it is run."""

from __future__ import annotations

from dataclasses import dataclass

NOON = 1_794_830_400.0
"""2026-11-16T12:00:00Z, a Monday: the start of a minute, an hour and half a day."""


@dataclass
class FakeClock:
    """Fulfils `ports.Clock`. Sleeping moves both hands; setting the time moves the one on the wall."""

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
