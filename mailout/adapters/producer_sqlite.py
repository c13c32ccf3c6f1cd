"""A producer's SQLite queue of notifications: the only code that touches its tables. It changes no schema."""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mailout.clock import Clock
from mailout.errors import NotFound, SourceUnavailable
from mailout.intake.notification_port import ProducerRow, RowResult

BUSY_SECONDS = 5.0
AT_ONCE = 50
"""Rows in one transaction: the producer must not wait long for us."""

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

PENDING = "fanout_status IN ('pending', 'PENDING', 'Pending')"
"""Without case, and still a question that an index can answer."""
FREE = "(locked_at IS NULL OR coalesce(julianday(locked_at), 0) < julianday(:expired))"
"""julianday reads both forms of a time, with the zone and without; what it cannot read holds nothing."""


class ProducerSqlite:
    """Fulfils `Producer`. Every call is one transaction, or several short ones."""

    def __init__(
        self,
        path: Path,
        *,
        worker: str,
        clock: Clock,
        lock_seconds: float = 120.0,
        update_subscriptions: bool = True,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        self.path = path
        self._worker = worker
        self._clock = clock
        self._lock_seconds = lock_seconds
        self._cursor = 0
        with _translated(path):
            self._db = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=busy_seconds, isolation_level=None
            )
            self._db.row_factory = sqlite3.Row
            try:
                self._db.execute("PRAGMA foreign_keys = ON")
                self._columns = _checked_columns(path, self._db)
                self._times = {name: _form_of(self._db, *name.split(".")) for name in _TIMES}
            except BaseException:
                self._db.close()
                raise
        known = self._columns["subscriptions"]
        self._follows = update_subscriptions and {"last_known_section_status", "last_notified_at"} <= known

    # ── picking ──

    def lock(self, limit: int) -> Sequence[ProducerRow]:
        """Pending rows that nobody holds, by id; beyond the last ones first: what is done is not read."""
        with _translated(self.path):
            found = self._lock_after(self._cursor, limit)
            if not found and self._cursor:
                self._cursor = 0
                found = self._lock_after(0, limit)
            if found:
                self._cursor = found[-1]["notification_id"]
            return list(self._with_what_they_refer_to(found))

    def _lock_after(self, cursor: int, limit: int) -> list[dict[str, Any]]:
        now = self._clock.now()
        values = {
            "cursor": cursor,
            "limit": limit,
            "worker": self._worker,
            "now": self._time("open_event_notifications.locked_at", now),
            "expired": iso(now - self._lock_seconds),
        }
        which = (
            f"SELECT notification_id FROM open_event_notifications WHERE {PENDING} AND {FREE}"  # noqa: S608
            " AND notification_id > :cursor ORDER BY notification_id LIMIT :limit"
        )
        if self._db.execute(which, {**values, "limit": 1}).fetchone() is None:
            return []  # no need to keep the producer from writing
        with self._transaction():
            rows = self._db.execute(
                "UPDATE open_event_notifications SET locked_by = :worker, locked_at = :now"  # noqa: S608
                f" WHERE notification_id IN ({which}) RETURNING *",
                values,
            ).fetchall()
        return sorted((dict(row) for row in rows), key=lambda row: int(row["notification_id"]))

    def _with_what_they_refer_to(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[ProducerRow]:
        events = self._by("open_events", "open_event_id", (row["open_event_id"] for row in rows))
        wanted = (row["subscription_id"] for row in rows)
        subscriptions = self._by("subscriptions", "subscription_id", wanted)
        sections = {id: self._section(event) for id, event in events.items()}
        ids = [section["section_id"] for section in sections.values() if section]
        courses = self._by("courses", "course_id", (s.get("course_id") for s in sections.values() if s))
        meetings = self._meetings(ids)
        for row in rows:
            section = sections.get(row["open_event_id"])
            subscription = subscriptions.get(row["subscription_id"])
            yield ProducerRow(
                notification_id=row["notification_id"],
                attempts=row["fanout_attempts"] or 0,
                notification=row,
                event=events.get(row["open_event_id"]),
                subscription=subscription,
                section=section,
                course=courses.get(section.get("course_id")) if section else None,
                meetings=meetings.get(section["section_id"], ()) if section else (),
                notified=self._notified(subscription),
            )

    def _by(self, table: str, column: str, ids: Iterable[Any]) -> dict[Any, dict[str, Any]]:
        wanted = list({id for id in ids if id is not None})
        if column not in self._columns[table] or not wanted:
            return {}
        rows = self._db.execute(
            f"SELECT * FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))",  # noqa: S608
            (json.dumps(wanted),),
        )
        return {row[column]: dict(row) for row in rows}

    def _section(self, event: Mapping[str, Any]) -> dict[str, Any] | None:
        """By its id; an event that has none names its term, campus and index."""
        known = self._columns["sections"]
        if not {"section_id", "term_id", "campus_code", "index_number"} <= known:
            return None
        if event.get("section_id") is not None:
            return self._by("sections", "section_id", [event["section_id"]]).get(event["section_id"])
        row = self._db.execute(
            "SELECT * FROM sections WHERE term_id = ? AND campus_code = ? AND index_number = ?",
            (event["term_id"], event["campus_code"], event["index_number"]),
        ).fetchone()
        return dict(row) if row else None

    def _meetings(self, sections: Sequence[Any]) -> Mapping[Any, list[dict[str, Any]]]:
        if not sections or "section_id" not in self._columns["section_meetings"]:
            return {}
        rows = self._db.execute(
            "SELECT * FROM section_meetings WHERE section_id IN (SELECT value FROM json_each(?))"
            " ORDER BY rowid",
            (json.dumps(list(sections)),),
        )
        found: dict[Any, list[dict[str, Any]]] = {}
        for row in rows:
            found.setdefault(row["section_id"], []).append(dict(row))
        return found

    def _notified(self, subscription: Mapping[str, Any] | None) -> int:
        """Counted for whoever has set a limit: it takes a walk through the events."""
        if subscription is None or "maxNotifications" not in (subscription.get("metadata") or ""):
            return 0
        (count,) = self._db.execute(
            "SELECT count(*) FROM subscription_events"
            " WHERE subscription_id = ? AND event_type = 'notify_sent'",
            (subscription["subscription_id"],),
        ).fetchone()
        return int(count)

    # ── holding and telling ──

    def still_ours(self, ids: Sequence[int]) -> set[int]:
        now = self._time("open_event_notifications.locked_at", self._clock.now())
        ours: set[int] = set()
        for part in _parts(list(ids)):
            with _translated(self.path), self._transaction():
                rows = self._db.execute(
                    "UPDATE open_event_notifications SET locked_at = ? WHERE locked_by = ?"  # noqa: S608
                    f" AND {PENDING} AND notification_id IN (SELECT value FROM json_each(?))"
                    " RETURNING notification_id",
                    (now, self._worker, json.dumps(part)),
                ).fetchall()
            ours.update(row["notification_id"] for row in rows)
        return ours

    def write(self, results: Sequence[RowResult]) -> set[int]:
        written: set[int] = set()
        for part in _parts(list(results)):
            with _translated(self.path), self._transaction():
                written.update(result.row.notification_id for result in part if self._write(result))
        return written

    def _write(self, result: RowResult) -> bool:
        now = self._clock.now()
        changed = self._db.execute(
            "UPDATE open_event_notifications SET fanout_status = :status,"  # noqa: S608
            " fanout_attempts = coalesce(fanout_attempts, 0) + :spent, last_attempt_at = :now,"
            " error = :error,"
            f" locked_by = NULL, locked_at = :free_at WHERE notification_id = :id AND {PENDING}"
            " AND locked_by = :worker",
            {
                "status": result.status,
                "spent": int(result.spends_attempt),
                "now": self._time("open_event_notifications.last_attempt_at", now),
                "error": json.dumps(result.error, ensure_ascii=False),
                "free_at": self._free_in(result.pick_in, now),
                "id": result.row.notification_id,
                "worker": self._worker,
            },
        )
        if changed.rowcount == 1 and result.event is not None:
            self._append_event(result, now)
        return changed.rowcount == 1

    def _append_event(self, result: RowResult, now: float) -> None:
        row = result.row
        status = (row.section or {}).get("open_status") or (row.event or {}).get("status_after")
        subscription = row.notification["subscription_id"]
        if row.subscription is None:
            return  # nobody to append it to
        self._db.execute(
            "INSERT INTO subscription_events (subscription_id, event_type, section_status_snapshot, payload,"
            " created_at) VALUES (?, ?, ?, ?, ?)",
            (
                subscription,
                result.event,
                status,
                json.dumps({"notificationId": row.notification_id, **result.error}, ensure_ascii=False),
                self._time("subscription_events.created_at", now),
            ),
        )
        if result.event == "notify_sent" and self._follows:
            self._db.execute(
                "UPDATE subscriptions SET last_known_section_status = ?, last_notified_at = ?"
                " WHERE subscription_id = ?",
                (status, self._time("subscriptions.last_notified_at", now), subscription),
            )

    def release(self, delays: Mapping[int, float]) -> None:
        now = self._clock.now()
        for part in _parts(list(delays.items())):
            with _translated(self.path), self._transaction():
                self._db.executemany(
                    "UPDATE open_event_notifications SET locked_by = NULL, locked_at = ?"  # noqa: S608
                    f" WHERE notification_id = ? AND locked_by = ? AND {PENDING}",
                    [(self._free_in(delay, now), id, self._worker) for id, delay in part],
                )

    def _free_in(self, seconds: float | None, now: float) -> str | None:
        """When a row is free again stands in `locked_at`: a lock that runs out then."""
        if not seconds:
            return None
        since = now - self._lock_seconds + min(seconds, self._lock_seconds)
        return self._time("open_event_notifications.locked_at", since)

    def was_told(self, row: ProducerRow, message_id: str) -> bool:
        """Whether the row was once told how this message ended: its event was written in the same commit."""
        with _translated(self.path):
            rows = self._db.execute(
                "SELECT payload FROM subscription_events WHERE subscription_id = ?"
                " AND event_type IN ('notify_sent', 'notify_failed')",
                (row.notification["subscription_id"],),
            ).fetchall()
        return any(message_id in (found["payload"] or "") for found in rows)

    def requeue(self, id: int) -> None:
        """An operator's act: as if it had never been tried."""
        with _translated(self.path), self._transaction():
            row = self._db.execute(
                "SELECT fanout_status FROM open_event_notifications WHERE notification_id = ?", (id,)
            ).fetchone()
            if row is None:
                raise NotFound(f"There is no notification {id} in {self.path}.")
            self._db.execute(
                "UPDATE open_event_notifications SET fanout_status = 'pending', fanout_attempts = 0,"
                " error = NULL, locked_by = NULL, locked_at = NULL WHERE notification_id = ?",
                (id,),
            )

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _time(self, column: str, moment: float) -> str:
        return self._times[column](moment)


# ── times ──


def iso(moment: float) -> str:
    """As the producer's programs write it."""
    text = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def plain(moment: float) -> str:
    """As `datetime('now')` writes it: whole seconds, the next one, so that nothing is early."""
    return datetime.fromtimestamp(math.ceil(moment), UTC).strftime("%Y-%m-%d %H:%M:%S")


_TIMES = (
    "open_event_notifications.locked_at",
    "open_event_notifications.last_attempt_at",
    "subscription_events.created_at",
    "subscriptions.last_notified_at",
)


def _form_of(db: sqlite3.Connection, table: str, column: str) -> Callable[[float], str]:
    """The form that the column holds; a column that holds nothing yet gets the programs' own."""
    try:
        row = db.execute(
            f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY rowid DESC LIMIT 1"  # noqa: S608
        ).fetchone()
    except sqlite3.OperationalError:  # a column that this producer does not have
        return iso
    return plain if row is not None and " " in str(row[0]) else iso


# ── opening ──


def copy_database(source: Path, target: Path) -> Path:
    """A copy to rehearse on, whole even while the producer writes."""
    draft = target.with_name(f"{target.name}.part")
    with _translated(source):
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


def _checked_columns(path: Path, db: sqlite3.Connection) -> dict[str, set[str]]:
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


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """SQLite's errors in one line each. All of them may pass: the worker tries again."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        if not path.exists():
            said, remedy = f"There is no file {path}.", "Check --db or NOTIFY_DB."
        elif "locked" in text:
            said, remedy = f"{path} is locked by another program.", "It is tried again."
        elif "readonly" in text or not os.access(path, os.W_OK):
            said, remedy = (
                f"{path} cannot be written to.",
                "Give the user that runs mailout the right to write it.",
            )
        elif "not a database" in text or "malformed" in text:
            said, remedy = f"{path} is not a sound SQLite database.", "Check --db or NOTIFY_DB."
        else:
            said, remedy = f"{path} does not answer: {text}.", "It is tried again."
        raise SourceUnavailable(said, remedy=remedy) from error


def _parts(things: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(things), AT_ONCE):
        yield things[start : start + AT_ONCE]
