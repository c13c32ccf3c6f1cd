"""The embedded store: one SQLite file that several processes of one machine may share."""

from __future__ import annotations

from pathlib import Path

from mailout.adapters.sqlite.database import BUSY_SECONDS, Database
from mailout.adapters.sqlite.due_reports import SqliteDueReports
from mailout.adapters.sqlite.feedback import SqliteFeedback
from mailout.adapters.sqlite.leaving import SqliteLeaving
from mailout.adapters.sqlite.outbox import SqliteOutbox
from mailout.adapters.sqlite.queue import SqliteQueue
from mailout.adapters.sqlite.records import SqliteRecords
from mailout.adapters.sqlite.requests import SqliteRequests
from mailout.adapters.sqlite.subscribers import SqliteSubscribers
from mailout.ports import Clock


class SqliteStore(
    SqliteOutbox,
    SqliteQueue,
    SqliteSubscribers,
    SqliteRecords,
    SqliteDueReports,
    SqliteFeedback,
    SqliteLeaving,
    SqliteRequests,
):
    """Fulfils `ports.Store`. Its time is the clock handed in, so a test can set it."""

    name = "sqlite"

    def __init__(self, path: Path, clock: Clock, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.db = Database(path, clock, busy_seconds=busy_seconds)

    def now(self) -> float:
        return self.db.clock.now()

    def check(self) -> None:
        """Opening it has brought the schema up to date; see that it also answers."""
        self.db.read("SELECT count(*) FROM campaign_queue")

    def close(self) -> None:
        self.db.close()
