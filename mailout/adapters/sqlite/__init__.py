"""The embedded store: one SQLite file that several processes of one machine may share."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from mailout.adapters.sqlite.archive import SqliteArchives
from mailout.adapters.sqlite.articles import SqliteArticles
from mailout.adapters.sqlite.database import SQLITE_BUSY_SECONDS, Database
from mailout.adapters.sqlite.feedback import SqliteFeedback
from mailout.adapters.sqlite.forgetting import SqliteForgetting
from mailout.adapters.sqlite.freezing import SqliteFreezing
from mailout.adapters.sqlite.leaving import SqliteLeaving
from mailout.adapters.sqlite.outbox import SqliteOutbox
from mailout.adapters.sqlite.queue import SqliteQueue
from mailout.adapters.sqlite.records import SqliteRecords
from mailout.adapters.sqlite.segments import SqliteSegments
from mailout.adapters.sqlite.select import SqliteRows
from mailout.adapters.sqlite.sign_ups import SqliteSignUps
from mailout.adapters.sqlite.single_mails import SqliteSingleMails
from mailout.adapters.sqlite.subscribers import SqliteSubscribers
from mailout.base.clock import Clock
from mailout.insight.doctor.checks import Check
from mailout.outbox.delivery.outbox_rows import living_senders

WAL_RESET_MENDED = (3, 51, 3)


class SqliteStore(
    SqliteRows,
    SqliteOutbox,
    SqliteQueue,
    SqliteFreezing,
    SqliteSubscribers,
    SqliteSegments,
    SqliteRecords,
    SqliteFeedback,
    SqliteLeaving,
    SqliteForgetting,
    SqliteArchives,
    SqliteArticles,
    SqliteSingleMails,
    SqliteSignUps,
):
    """Fulfils `mailout.store.Store`. Its time is the clock handed in, so a test can set it."""

    name = "sqlite"

    def __init__(self, path: Path, clock: Clock, *, busy_seconds: float = SQLITE_BUSY_SECONDS) -> None:
        self.db = Database(path, clock, busy_seconds=busy_seconds)

    def now(self) -> float:
        return self.db.clock.now()

    def check(self) -> int:
        """Opening it has brought the schema up to date; see that it also answers."""
        ((version,),) = self.db.read("PRAGMA user_version")
        return int(version)

    def examine(self) -> Iterator[Check]:
        version = sqlite3.sqlite_version
        living = living_senders(self)
        if sqlite3.sqlite_version_info < WAL_RESET_MENDED and living > 1:
            yield Check(
                "SQLite",
                "warn",
                f"{living} senders share it; {version} has a rare fault when several write at once",
                "Use a Python whose SQLite is 3.51.3 or newer, or one sender, or Supabase.",
            )
        else:
            yield Check("SQLite", "ok", version)

    def close(self) -> None:
        self.db.close()
