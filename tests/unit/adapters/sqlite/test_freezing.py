"""How much SQLite writes at a time. What freezing does is in the stores' contract."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.clocks import FakeClock
from tests.contract.scenes import enqueue, subscribe
from tests.new_sqlite import open_new


def test_a_large_part_is_written_only_while_nobody_sends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mailout.adapters.sqlite.freezing.FREEZE_ROWS", 1)
    monkeypatch.setattr("mailout.adapters.sqlite.freezing.FREEZE_ROWS_ALONE", 3)
    clock = FakeClock()
    with closing(open_new(tmp_path / "mailout.db", clock)) as store:
        subscribe(store, *(f"reader{n}@example.org" for n in range(5)))
        id = enqueue(store)
        store.open_session(None, worker="elsewhere", transport="ses", lease=60.0)
        assert store.freeze_subscribers(id) == 1
        clock.wall += 61  # it has died
        assert [store.freeze_subscribers(id) for _ in range(3)] == [3, 1, None]
