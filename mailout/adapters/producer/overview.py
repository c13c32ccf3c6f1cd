"""A look at a producer's SQLite queue of notifications: it is opened for reading alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from mailout.adapters.producer.database import is_missing
from mailout.errors import SourceUnavailable
from mailout.intake.notification_port import ProducerQueue, QueuedNotification

BUSY_SECONDS = 1.0


def read_producer_queue(path: Path, *, status: str | None = None, limit: int = 50) -> ProducerQueue:
    """How many rows are in which status, and the newest ones of a status or of all."""
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
        ) as db:
            counts = dict(
                db.execute(
                    "SELECT lower(fanout_status), count(*) FROM open_event_notifications"
                    " GROUP BY 1 ORDER BY 1"
                )
            )
            rows = db.execute(
                "SELECT n.notification_id, lower(n.fanout_status), coalesce(n.fanout_attempts, 0),"
                " n.last_attempt_at, n.error, s.contact_value"
                " FROM open_event_notifications n LEFT JOIN subscriptions s USING (subscription_id)"
                " WHERE ?1 IS NULL OR lower(n.fanout_status) = ?1 ORDER BY n.notification_id DESC LIMIT ?2",
                (status, limit),
            ).fetchall()
    except sqlite3.DatabaseError as error:
        said = f"There is no file {path}" if is_missing(path) else f"{path} cannot be read: {error}"
        raise SourceUnavailable(f"{said}.", remedy="Check NOTIFY_DB, and who may read it.") from error
    return ProducerQueue(counts, [QueuedNotification(*row) for row in rows])
