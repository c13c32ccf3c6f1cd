"""`retention` as Prefect runs it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from flows.retention import retention
from mailout.app.engine import Engine


def test_old_mailouts_are_archived_and_the_run_says_how_many(
    engine_with: Callable[..., Engine], letter: str, tmp_path: Path
) -> None:
    engine = engine_with()
    id = engine.intake.enqueue(letter).id
    engine.deliver(id)
    with closing(sqlite3.connect(tmp_path / "home" / "mailout.db")) as db, db:
        db.execute("UPDATE campaign_queue SET completed_at = completed_at - 40 * 86400")
    assert retention(return_state=True).message == "0 mailouts archived."  # 90 days, if nobody says otherwise
    assert retention(older_than=30, return_state=True).message == "1 mailout archived."
    assert len(list((tmp_path / "home" / "archive").glob(f"{id}.*.parquet"))) == 1
    assert retention(older_than=7, return_state=True).is_failed()
