"""What locked rows of a producer refer to: events, subscriptions, sections, courses, meetings."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

from mailout.kinds.notifications.port import ProducerRow

PENDING = "fanout_status IN ('pending', 'PENDING', 'Pending')"
"""Without case, and still a question that an index can answer."""


def id_list(ids: Iterable[Any]) -> str:
    """For `json_each`. What JSON cannot hold, a BLOB or infinity, is nobody's id."""
    return json.dumps([id for id in set(ids) if not isinstance(id, bytes) and id not in (inf, -inf)])


class RowReader:
    """Reads what is there: sections, courses and meetings may be missing."""

    def __init__(self, db: sqlite3.Connection, columns: Mapping[str, set[str]]) -> None:
        self._db = db
        self._columns = columns

    def complete(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[ProducerRow]:
        events = self._by("open_events", "open_event_id", (row["open_event_id"] for row in rows))
        wanted = (row["subscription_id"] for row in rows)
        subscriptions = self._by("subscriptions", "subscription_id", wanted)
        sections = {id: self._section(event) for id, event in events.items()}
        ids = [section["section_id"] for section in sections.values() if section]
        courses = self._by("courses", "course_id", (s.get("course_id") for s in sections.values() if s))
        meetings = self._meetings(ids)
        limited = [id for id, one in subscriptions.items() if _has_limit(one)]
        notified = {id: self._notified(id) for id in limited}
        pending = self._pending(limited)
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
                notified=notified.get(row["subscription_id"], 0),
                ahead=sum(id < row["notification_id"] for id in pending.get(row["subscription_id"], ())),
            )

    def _by(self, table: str, column: str, ids: Iterable[Any]) -> dict[Any, dict[str, Any]]:
        if column not in self._columns[table]:
            return {}
        rows = self._db.execute(
            f"SELECT * FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))",  # noqa: S608
            (id_list(ids),),
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
            (id_list(sections),),
        )
        found: dict[Any, list[dict[str, Any]]] = {}
        for row in rows:
            found.setdefault(row["section_id"], []).append(dict(row))
        return found

    def _notified(self, subscription: Any) -> int:
        (count,) = self._db.execute(
            "SELECT count(*) FROM subscription_events"
            " WHERE subscription_id = ? AND event_type = 'notify_sent'",
            (subscription,),
        ).fetchone()
        return int(count)

    def _pending(self, subscriptions: Sequence[Any]) -> Mapping[Any, list[int]]:
        """Their rows that wait, whoever holds them."""
        found: dict[Any, list[int]] = {}
        if subscriptions:
            rows = self._db.execute(
                "SELECT subscription_id, notification_id FROM open_event_notifications"  # noqa: S608
                f" WHERE {PENDING} AND subscription_id IN (SELECT value FROM json_each(?))",
                (id_list(subscriptions),),
            )
            for row in rows:
                found.setdefault(row["subscription_id"], []).append(row["notification_id"])
        return found


def _has_limit(subscription: Mapping[str, Any]) -> bool:
    """Only for those who have one it is counted how often they were notified: it takes a walk."""
    return "maxNotifications" in str(subscription.get("metadata"))
