"""Rows of a producer's queue: locked, held, updated when their messages end, released."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mailout.adapters.producer.database import TIMES, checked_columns, file_at, form_of, translated
from mailout.adapters.producer.rows import PENDING, RowReader, id_list
from mailout.base.clock import Clock
from mailout.base.errors import NotFound, SourceUnavailable
from mailout.base.time_format import iso
from mailout.kinds.notifications.port import ProducerRow, RowResult
from mailout.kinds.notifications.rules import read_json

PRODUCER_BUSY_SECONDS = 5.0
CURSOR_SECONDS = 30.0
"""So long rows are picked in the order of their ids, then from the first one again."""
ROWS_PER_TRANSACTION = 25
"""Rows that are updated in one transaction: the producer must not wait long for us."""

FREE = "(locked_at IS NULL OR coalesce(julianday(locked_at), 0) < julianday(:expired))"
"""julianday reads both forms of a time, with the zone and without; what it cannot read holds nothing."""
FOR_EMAIL = (
    "NOT EXISTS (SELECT 1 FROM subscriptions s WHERE lower(s.contact_type) <> 'email'"
    " AND s.subscription_id = open_event_notifications.subscription_id)"
)
"""Also where the subscription is gone: that is reported to the row."""


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
        email_only: bool = False,
        busy_seconds: float = PRODUCER_BUSY_SECONDS,
    ) -> None:
        self.path = path
        self._worker = worker
        self._clock = clock
        self._lock_seconds = lock_seconds
        self._ours = f" AND {FOR_EMAIL}" if email_only else ""  # other rows are not even locked
        self._cursor, self._began_at = 0, clock.monotonic()
        self._file = file_at(path)
        with translated(path):
            # Each `with self._db` is one transaction, alone from its first write on.
            self._db = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=rw",
                uri=True,
                timeout=busy_seconds,
                isolation_level="IMMEDIATE",
            )
            self._db.row_factory = sqlite3.Row
            # A text that is not in UTF-8 must not keep every row of its batch from being read.
            self._db.text_factory = partial(str, encoding="utf-8", errors="replace")
            try:
                self._db.execute("PRAGMA foreign_keys = ON")
                columns = checked_columns(path, self._db)
                self._times = {name: form_of(self._db, *name.split(".")) for name in TIMES}
            except BaseException:
                self._db.close()
                raise
        self._rows = RowReader(self._db, columns)
        known = columns["subscriptions"]
        self._updated_at = ", updated_at = :now" if "updated_at" in known else ""
        self._follows = update_subscriptions and {"last_known_section_status", "last_notified_at"} <= known

    # ── picking ──

    def lock(self, limit: int) -> Sequence[ProducerRow]:
        """Pending rows that nobody holds, by id; beyond the last ones first: what is done is not read. But a
        row that is due again must not wait until no new ones come."""
        if file_at(self.path) != self._file:  # a file that was replaced stays open, and gets no new rows
            raise SourceUnavailable(f"{self.path} was moved or replaced.", remedy="It is opened again.")
        if self._clock.monotonic() - self._began_at >= CURSOR_SECONDS:
            self._begin_again()
        with translated(self.path):
            found = self._lock_after(self._cursor, limit)
            if not found and self._cursor:
                self._begin_again()
                found = self._lock_after(0, limit)
            if found:
                self._cursor = found[-1]["notification_id"]
            return list(self._rows.complete(found))

    def _begin_again(self) -> None:
        self._cursor, self._began_at = 0, self._clock.monotonic()

    def _lock_after(self, cursor: int, limit: int) -> list[dict[str, Any]]:
        now = self._clock.now()
        values = {
            "cursor": cursor,
            "limit": limit,
            "worker": self._worker,
            "now": self._times["open_event_notifications.locked_at"](now),
            "expired": iso(now - self._lock_seconds),
        }
        which = (
            f"SELECT notification_id FROM open_event_notifications WHERE {PENDING} AND {FREE}"  # noqa: S608
            f"{self._ours} AND notification_id > :cursor ORDER BY notification_id LIMIT :limit"
        )
        if self._db.execute(which, {**values, "limit": 1}).fetchone() is None:
            return []  # no need to keep the producer from writing
        with self._db:
            rows = self._db.execute(
                "UPDATE open_event_notifications SET locked_by = :worker, locked_at = :now"  # noqa: S608
                f" WHERE notification_id IN ({which}) RETURNING *",
                values,
            ).fetchall()
        return sorted((dict(row) for row in rows), key=lambda row: int(row["notification_id"]))

    # ── holding and writing ──

    def reported(self, rows: Sequence[ProducerRow]) -> set[tuple[int, str]]:
        """The event of an end was written in the same commit as the row."""
        with translated(self.path):
            found = self._db.execute(
                "SELECT payload FROM subscription_events WHERE event_type IN ('notify_sent', 'notify_failed')"
                " AND subscription_id IN (SELECT value FROM json_each(?))",
                (id_list(row.notification["subscription_id"] for row in rows),),
            ).fetchall()
        told = [read_json(event["payload"]) for event in found]
        named = [(one.get("notificationId"), one.get("outboxId")) for one in told]  # others write there, too
        return {(row, id) for row, id in named if isinstance(row, int) and isinstance(id, str)}

    def still_ours(self, ids: Sequence[int]) -> set[int]:
        now = self._times["open_event_notifications.locked_at"](self._clock.now())
        with translated(self.path), self._db:
            rows = self._db.execute(
                "UPDATE open_event_notifications SET locked_at = ? WHERE locked_by = ?"  # noqa: S608
                f" AND {PENDING} AND notification_id IN (SELECT value FROM json_each(?))"
                " RETURNING notification_id",
                (now, self._worker, json.dumps(list(ids))),
            ).fetchall()
        return {row["notification_id"] for row in rows}

    def write(self, results: Sequence[RowResult]) -> set[int]:
        written: set[int] = set()
        for part in _parts(list(results)):
            with translated(self.path), self._db:
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
                "now": self._times["open_event_notifications.last_attempt_at"](now),
                "error": _compact(result.error),
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
                _compact({"notificationId": row.notification_id, **result.error}),
                self._times["subscription_events.created_at"](now),
            ),
        )
        if result.event == "notify_sent" and self._follows:
            self._db.execute(
                "UPDATE subscriptions SET last_known_section_status = :status, last_notified_at = :now"  # noqa: S608
                f"{self._updated_at} WHERE subscription_id = :id",
                {
                    "status": status,
                    "now": self._times["subscriptions.last_notified_at"](now),
                    "id": subscription,
                },
            )

    def release(self, delays: Mapping[int, float]) -> None:
        now = self._clock.now()
        for part in _parts(list(delays.items())):
            with translated(self.path), self._db:
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
        return self._times["open_event_notifications.locked_at"](since)

    def requeue(self, id: int) -> None:
        """An operator's act: as if it had never been tried."""
        with translated(self.path), self._db:
            found = self._db.execute(
                "UPDATE open_event_notifications SET fanout_status = 'pending', fanout_attempts = 0,"
                " error = NULL, locked_by = NULL, locked_at = NULL WHERE notification_id = ?",
                (id,),
            )
        if not found.rowcount:
            raise NotFound(f"There is no notification {id} in {self.path}.")

    def close(self) -> None:
        self._db.close()


def _compact(value: Mapping[str, Any]) -> str:
    """As the producer's own worker writes it: others search these texts for `"status":"sent"`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _parts(things: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(things), ROWS_PER_TRANSACTION):
        yield things[start : start + ROWS_PER_TRANSACTION]
