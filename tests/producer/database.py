"""A producer's database: sections, subscriptions, open seats, and a look at what became of its rows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

SCHEMA = Path(__file__).parents[2] / "examples" / "producer_schema.sql"


class ProducerDatabase:
    """Written to as its own programs do: short connections, beside whoever else has it open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with closing(sqlite3.connect(path)) as db:
            db.executescript(SCHEMA.read_text(encoding="utf-8"))
            db.execute(
                "INSERT INTO courses VALUES (1, '92026', 'NB', '198', '111', '01:198:111', 'Computing')"
            )
            db.execute(
                "INSERT INTO sections VALUES"
                " (1, 1, '92026', 'NB', '198', '07', '12345', 'OPEN', 1, NULL, NULL)"
            )
            db.execute(
                "INSERT INTO section_meetings (section_id, meeting_day, start_minutes, end_minutes,"
                " building_code, room_number) VALUES (1, 'M', 540, 600, 'TIL', '124')"
            )
            db.commit()

    def sql(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(self.path, timeout=300)) as db:
            db.row_factory = sqlite3.Row
            rows = [dict(row) for row in db.execute(statement, values)]
            db.commit()
            return rows

    def subscribe(self, email: str = "ana@example.org", **columns: Any) -> int:
        values = {
            "section_id": 1,
            "term_id": "92026",
            "campus_code": "NB",
            "index_number": "12345",
            "contact_type": "email",
            "contact_value": email,
            "status": "active",
            "unsubscribe_token": f"token-{email}",
            **columns,
        }
        if isinstance(values.get("metadata"), dict):
            values["metadata"] = json.dumps(values["metadata"])
        return self._insert("subscriptions", values, "subscription_id")

    def open_event(self, **columns: Any) -> int:
        payload = columns.pop(
            "payload", {"courseTitle": "Intro CS", "sectionNumber": "01", "snapshotHash": "a1"}
        )
        values = {
            "section_id": 1,
            "term_id": "92026",
            "campus_code": "NB",
            "index_number": "12345",
            "status_before": "CLOSED",
            "status_after": "OPEN",
            "event_at": "2026-11-15T11:59:00.000Z",
            "dedupe_key": "dedupe",
            "trace_id": "trace-1",
            "payload": payload if payload is None or isinstance(payload, str) else json.dumps(payload),
            **columns,
        }
        return self._insert("open_events", values, "open_event_id")

    def notify(self, subscription: int, event: int, dedupe_key: str = "dedupe", **columns: Any) -> int:
        values = {
            "open_event_id": event,
            "subscription_id": subscription,
            "dedupe_key": dedupe_key,
            **columns,
        }
        return self._insert("open_event_notifications", values, "notification_id")

    def one(
        self, email: str = "ana@example.org", *, event: dict[str, Any] | None = None, **columns: Any
    ) -> int:
        """A subscription and one notification for it."""
        return self.notify(self.subscribe(email, **columns), self.open_event(**(event or {})))

    def many(self, emails: Iterable[str]) -> None:
        event = self.open_event()
        with closing(sqlite3.connect(self.path, timeout=300)) as db:
            for email in emails:
                cursor = db.execute(
                    "INSERT INTO subscriptions (section_id, term_id, campus_code, index_number, contact_type,"
                    " contact_value, status, unsubscribe_token)"
                    " VALUES (1, '92026', 'NB', '12345', 'email', ?,"
                    " 'active', ?)",
                    (email, f"token-{email}"),
                )
                db.execute(
                    "INSERT INTO open_event_notifications (open_event_id, subscription_id, dedupe_key)"
                    " VALUES (?, ?, 'dedupe')",
                    (event, cursor.lastrowid),
                )
            db.commit()

    def row(self, id: int) -> dict[str, Any]:
        (row,) = self.sql("SELECT * FROM open_event_notifications WHERE notification_id = ?", id)
        return {**row, "error": json.loads(row["error"]) if row["error"] else None}

    def rows(self) -> Sequence[dict[str, Any]]:
        return self.sql(
            "SELECT n.*, s.contact_value AS email FROM open_event_notifications n"
            " JOIN subscriptions s USING (subscription_id) ORDER BY notification_id"
        )

    def events(self) -> Sequence[dict[str, Any]]:
        rows = self.sql("SELECT * FROM subscription_events ORDER BY event_id")
        return [{**row, "payload": json.loads(row["payload"])} for row in rows]

    def free_locks(self, worker: str = "%") -> None:
        """As if the time of every lock were over, or of those whose worker has such a name."""
        self.sql(
            "UPDATE open_event_notifications SET locked_at = '2000-01-01T00:00:00Z' WHERE locked_by LIKE ?",
            worker,
        )

    def _insert(self, table: str, values: dict[str, Any], id: str) -> int:
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        (row,) = self.sql(f"INSERT INTO {table} ({names}) VALUES ({marks}) RETURNING {id}", *values.values())
        return int(row[id])
