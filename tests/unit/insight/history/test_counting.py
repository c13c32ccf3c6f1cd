"""Counts over time: the day is the one on the wall where mail is sent from."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

from mailout.adapters.sqlite import SqliteStore
from mailout.insight.history import history_rows
from mailout.insight.history.port import days_ago, spread
from tests.clocks import FakeClock


def test_people_are_counted_for_the_day_of_the_zone(tmp_path: Path) -> None:
    clock = FakeClock()
    store = SqliteStore(tmp_path / "mailout.db", clock)
    clock.wall = 1_794_787_200.0  # 2026-11-16 00:00 UTC
    for zone in ("America/Lima", "Asia/Tokyo"):
        store.keep_counts(days_ago(store.now(), ZoneInfo(zone), 0))
    assert [day for day, _ in history_rows.people_over_time(store, "2026-11-01")] == [
        "2026-11-15",
        "2026-11-16",
    ]
    assert days_ago(clock.wall, ZoneInfo("Asia/Tokyo"), 90) == "2026-08-18"
    store.close()


def test_samples_speak_for_all() -> None:
    assert spread([], 5) == []
    assert spread([3.0, 1.0, 2.0, 4.0], 1000) == [(1.0, 250), (2.0, 500), (3.0, 750), (4.0, 1000)]
