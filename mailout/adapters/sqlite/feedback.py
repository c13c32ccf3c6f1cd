"""Feedback on SQLite: the inbox of events, and what is asked about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mailout.adapters.sqlite.database import Database
from mailout.adapters.sqlite.event_batch import EventBatch
from mailout.adapters.sqlite.subscriber_state import change_status
from mailout.outbox.feedback.port import (
    Applied,
    Drift,
    Reading,
    Received,
    StatusChange,
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

    def apply_events(self, readings: Sequence[Reading]) -> Applied:
        with self.db.write() as tx:
            return EventBatch(tx, self.db.clock.now(), readings).write()

    def change_statuses(self, changes: Mapping[str, StatusChange]) -> int:
        with self.db.write() as tx:
            return sum(change_status(tx, email, one) for email, one in sorted(changes.items()))

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
