"""Feedback on SQLite: the inbox of events, and what is asked about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mailout.adapters.sqlite.database import Database, with_json
from mailout.adapters.sqlite.event_batch import EventBatch
from mailout.adapters.sqlite.subscriber_state import change_status
from mailout.outbox.feedback.port import (
    Applied,
    Doubts,
    Drift,
    InboxCounts,
    Reading,
    Received,
    StatusChange,
    Waiting,
)


class SqliteFeedback:
    """Fulfils the part of `Feedback` that is about events."""

    db: Database

    def receive_events(self, received: Sequence[Received]) -> int:
        with self.db.write() as tx:
            now = self.db.clock.now()
            before = tx.total_changes
            tx.executemany(
                "INSERT INTO events_inbox (id, source, payload, received_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (id) DO NOTHING",
                [(one.id, one.source, one.payload, now) for one in received],
            )
            return tx.total_changes - before

    def waiting_events(self, limit: int) -> Sequence[Waiting]:
        rows = self.db.read(
            "SELECT id, source, payload, received_at FROM events_inbox WHERE applied_at IS NULL"
            " ORDER BY received_at, id LIMIT ?",
            (limit,),
        )
        return [Waiting(*row) for row in rows]

    def apply_events(self, readings: Sequence[Reading]) -> Applied:
        with self.db.write() as tx:
            return EventBatch(tx, self.db.clock.now(), readings).write()

    def inbox_counts(self) -> InboxCounts:
        (row,) = self.db.read(
            "SELECT count(*) AS waiting, min(received_at) AS oldest,"
            " (SELECT count(*) FROM events_inbox WHERE applied_at IS NOT NULL) AS applied"
            " FROM events_inbox WHERE applied_at IS NULL"
        )
        return InboxCounts(*row)

    def delivery_events(
        self, *, message_id: str | None = None, email: str | None = None, limit: int = 100
    ) -> Sequence[Mapping[str, Any]]:
        column, wanted = ("message_id", message_id) if message_id is not None else ("email", email)
        rows = self.db.read(
            f"SELECT * FROM delivery_events WHERE {column} = ? ORDER BY event_at DESC, id LIMIT ?",  # noqa: S608
            (wanted, limit),
        )
        return [with_json(row, "detail") for row in rows]

    def change_statuses(self, changes: Mapping[str, StatusChange]) -> int:
        with self.db.write() as tx:
            return sum(change_status(tx, email, one) for email, one in sorted(changes.items()))

    def doubts_open(self) -> Doubts:
        (row,) = self.db.read(
            "SELECT count(*) AS unknown, min(unknown_at) AS oldest FROM email_outbox"
            " WHERE state = 'UNKNOWN'"
            " AND state IN ('FAILED', 'VALIDATION_FAILED', 'UNKNOWN')"  # names the index
        )
        return Doubts(*row)

    def usage_drift(self) -> Sequence[Drift]:
        return [Drift(*row) for row in self.db.read(_DRIFT)]


_DRIFT = """
WITH charged (company, kind, key, n) AS (
    SELECT company_id, 'hour', charged_hour, count(*) FROM email_outbox
    WHERE charged_hour IS NOT NULL GROUP BY company_id, charged_hour
    UNION ALL
    SELECT company_id, 'day', charged_day, count(*) FROM email_outbox
    WHERE charged_day IS NOT NULL GROUP BY company_id, charged_day
), expected (scope, kind, key, n) AS (
    SELECT company, kind, key, n FROM charged
    UNION ALL
    SELECT 'all', kind, key, sum(n) FROM charged GROUP BY kind, key
)
SELECT e.scope, e.kind, e.key, coalesce(u.n, 0), e.n
FROM expected e LEFT JOIN usage u ON u.scope = e.scope AND u.kind = e.kind AND u.key = e.key
WHERE coalesce(u.n, 0) < e.n ORDER BY 1, 2, 3"""
"""A row remembers the buckets of its last attempt alone: a counter may say more than the rows, never less."""
