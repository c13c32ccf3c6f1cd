"""Time: what the machine's clocks count."""

from __future__ import annotations

import sys
import time

import pytest

from mailout.base.clock import SystemClock


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere another clock counts it")
def test_the_time_in_which_the_machine_slept_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease runs out meanwhile; by a clock that stands still, its sender would go on."""
    clock = SystemClock()
    before = clock.monotonic()
    real = time.clock_gettime
    asleep = {time.CLOCK_BOOTTIME: 3600.0, time.CLOCK_MONOTONIC: 0.0}
    monkeypatch.setattr(time, "clock_gettime", lambda which: real(which) + asleep[which])
    assert clock.monotonic() - before >= 3600
