"""Feedback on SQLite: the inbox of events, and what is asked about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mailout.adapters.sqlite.database import Database
from mailout.adapters.sqlite.event_batch import EventBatch
from mailout.adapters.sqlite.subscriber_state import change_status
from mailout.outbox.feedback.port import (
    Applied,
    EventReading,
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

    def apply_events(self, readings: Sequence[EventReading]) -> Applied:
        with self.db.write() as tx:
            return EventBatch(tx, self.db.clock.now(), readings).write()

    def change_statuses(self, changes: Mapping[str, StatusChange]) -> int:
        with self.db.write() as tx:
            return sum(change_status(tx, email, one) for email, one in sorted(changes.items()))
