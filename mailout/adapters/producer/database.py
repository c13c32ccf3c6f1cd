"""A producer's database: looked at, copied for a rehearsal, checked; its errors in plain words."""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from mailout.base.errors import SourceBusy, SourceUnavailable
from mailout.base.time_format import iso
from mailout.kinds.notifications.port import ProducerQueue, QueuedNotification

NEEDED = {
    "open_event_notifications": (
        *("notification_id", "open_event_id", "subscription_id", "dedupe_key", "fanout_status"),
        *("fanout_attempts", "last_attempt_at", "locked_by", "locked_at", "error"),
    ),
    "open_events": (
        *("open_event_id", "term_id", "campus_code", "index_number", "status_after", "event_at"),
        *("payload", "trace_id"),
    ),
    "subscriptions": ("subscription_id", "contact_type", "contact_value", "status"),
    "subscription_events": (
        *("subscription_id", "event_type", "section_status_snapshot", "payload", "created_at"),
    ),
}
"""What the contract names. Sections, courses and meetings enrich a mail when they are there."""
TIMES = (
    "open_event_notifications.locked_at",
    "open_event_notifications.last_attempt_at",
    "subscription_events.created_at",
    "subscriptions.last_notified_at",
)
"""Which keep the form that they have."""
READ_BUSY_SECONDS = 1.0
AS_EFFECTIVE_USER = os.access in os.supports_effective_ids
"""Whether the system can tell what the user may do that this process acts as."""


def read_producer_queue(path: Path, *, status: str | None = None, limit: int = 50) -> ProducerQueue:
    """How many rows are in which status, and the newest ones of a status or of all. It is only read."""
    address = f"{path.absolute().as_uri()}?mode=ro"
    with translated(path), closing(sqlite3.connect(address, uri=True, timeout=READ_BUSY_SECONDS)) as db:
        counts = dict(
            db.execute(
                "SELECT lower(fanout_status), count(*) FROM open_event_notifications GROUP BY 1 ORDER BY 1"
            )
        )
        rows = db.execute(
            "SELECT n.notification_id, lower(n.fanout_status), coalesce(n.fanout_attempts, 0),"
            " n.last_attempt_at, n.error, s.contact_value"
            " FROM open_event_notifications n LEFT JOIN subscriptions s USING (subscription_id)"
            " WHERE ?1 IS NULL OR lower(n.fanout_status) = ?1 ORDER BY n.notification_id DESC LIMIT ?2",
            (status, limit),
        ).fetchall()
    return ProducerQueue(counts, [QueuedNotification(*row) for row in rows])


def copy_database(source: Path, target: Path) -> Path:
    """A copy to rehearse on, whole even while the producer writes."""
    draft = target.with_name(f"{target.name}.part")
    with translated(source):
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft.unlink(missing_ok=True)
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with (
                closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as theirs,
                closing(sqlite3.connect(draft)) as ours,
            ):
                theirs.backup(ours)
            for leftover in ("-wal", "-shm"):
                target.with_name(target.name + leftover).unlink(missing_ok=True)
            draft.replace(target)
        except OSError as error:
            raise SourceUnavailable(
                f"{source} could not be copied to {target}: {error.strerror or error}.",
                remedy="A rehearsal works on a copy; make room for it in MAILOUT_HOME.",
            ) from error
    return target


def checked_columns(path: Path, db: sqlite3.Connection) -> dict[str, set[str]]:
    tables = (*NEEDED, "sections", "courses", "section_meetings")
    columns = {
        table: {row["name"] for row in db.execute("SELECT name FROM pragma_table_info(?)", (table,))}
        for table in tables
    }
    for table, needed in NEEDED.items():
        missing = [name for name in needed if name not in columns[table]]
        if not columns[table]:
            raise SourceUnavailable(
                f"{path} has no table {table}: it is not the database of a producer of notifications.",
                remedy="Check --db or NOTIFY_DB.",
            )
        if missing:
            raise SourceUnavailable(
                f"{path}: {table} has no {', '.join(missing)}; its schema is older or another one.",
                remedy="Bring the producer up to date. Nothing was changed.",
            )
    return columns


def is_missing(path: Path) -> bool:
    """Not there; a folder that we may not look into may hold it."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def file_at(path: Path) -> tuple[int, int] | None:
    """Which file it is that stands there now."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """SQLite's errors in one line each. All of them may pass: the worker tries again."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        if is_missing(path):
            said, remedy = f"There is no file {path}.", "Check --db or NOTIFY_DB."
        elif "locked" in text:
            raise SourceBusy(f"{path} is locked by another program.", remedy="It is tried again.") from error
        elif "readonly" in text or not os.access(path, os.W_OK, effective_ids=AS_EFFECTIVE_USER):
            said, remedy = (
                f"{path} cannot be written to.",
                "Give the user that runs mailout the right to write it.",
            )
        elif "not a database" in text or "malformed" in text:
            said, remedy = f"{path} is not a sound SQLite database.", "Check --db or NOTIFY_DB."
        else:
            raise SourceBusy(f"{path} does not answer: {text}.", remedy="It is tried again.") from error
        raise SourceUnavailable(said, remedy=remedy) from error


def plain(moment: float) -> str:
    """As `datetime('now')` writes it: whole seconds, the next one, so that nothing is early."""
    return datetime.fromtimestamp(math.ceil(moment), UTC).strftime("%Y-%m-%d %H:%M:%S")


def form_of(db: sqlite3.Connection, table: str, column: str) -> Callable[[float], str | None]:
    """The form that the column holds; a column that holds nothing yet gets the programs' own."""
    try:
        row = db.execute(
            f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY rowid DESC LIMIT 1"  # noqa: S608
        ).fetchone()
    except sqlite3.OperationalError:  # a column that this producer does not have
        return iso
    return plain if row is not None and " " in str(row[0]) else iso
