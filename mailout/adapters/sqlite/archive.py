"""Old mailouts on their way out of SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from hashlib import sha256

from mailout.adapters.sqlite.database import Database
from mailout.adapters.sqlite.queue import SENDERS

_AS_IT_IS = (
    "SELECT q.*, (SELECT value FROM counters WHERE name = 'forgotten') FROM campaign_queue q WHERE id = ?"
    " AND status IN ('COMPLETED', 'CANCELLED') AND pending + in_flight + unknown = 0 AND archived_at IS NULL"
)
"""Somebody may be forgotten while an archive is being written that has their address already."""
WORTH_IT = 4
"""The file is made again when one part in so many is free: less would soon be used again anyway."""


class SqliteArchives:
    """Fulfils what `ArchiveStore` adds."""

    db: Database

    def archive_state(self, id: str) -> str | None:
        return _fingerprint(self.db.read(_AS_IT_IS, (id,)))

    def mark_archived(self, id: str, as_it_was: str, place: str) -> bool:
        with self.db.write() as tx:
            if _fingerprint(tx.execute(_AS_IT_IS, (id,)).fetchall()) != as_it_was:
                return False
            tx.execute(
                "UPDATE campaign_queue SET archived_at = ?, archived_to = ? WHERE id = ?",
                (self.db.clock.now(), place, id),
            )
            return True

    def delete_archived_events(self, id: str, ids: Sequence[str]) -> int:
        return self.db.change(
            "DELETE FROM delivery_events AS e WHERE e.id IN (SELECT value FROM json_each(:ids))"  # noqa: S608
            f" AND e.campaign_id = :id AND {_ARCHIVED}"
            " AND NOT (e.event_type IN ('bounce', 'delivered') AND EXISTS"
            "  (SELECT 1 FROM delivery_events b WHERE b.email = e.email AND b.event_type = 'bounce'"
            "   AND coalesce(b.detail ->> '$.bounceType', '') <> 'Permanent'))",
            {"ids": json.dumps(list(ids)), "id": id},
        )

    def delete_archived_messages(self, id: str, *, most: int = 10_000) -> int:
        return self.db.change(
            "DELETE FROM email_outbox WHERE seq IN"  # noqa: S608
            " (SELECT seq FROM email_outbox WHERE campaign_id = :id ORDER BY seq LIMIT :most)"
            f" AND {_ARCHIVED}",
            {"id": id, "most": most},
        )

    def trim_inbox(self, before: float, *, most: int = 10_000) -> int:
        return self.db.change(
            "DELETE FROM events_inbox WHERE id IN (SELECT id FROM events_inbox WHERE applied_at < ? LIMIT ?)",
            (before, most),
        )

    def give_space_back(self) -> int:
        """`VACUUM` copies what remains, so it takes as long as that is large; nobody can write meanwhile."""
        pages, free, size = (self._pragma(name) for name in ("page_count", "freelist_count", "page_size"))
        if self.db.read(SENDERS, (self.db.clock.now(),)) or free * WORTH_IT < pages:
            return 0
        self.db.compact()
        return (pages - self._pragma("page_count")) * size

    def _pragma(self, name: str) -> int:
        return int(self.db.read(f"PRAGMA {name}")[0][0])


_ARCHIVED = "EXISTS (SELECT 1 FROM campaign_queue q WHERE q.id = :id AND q.archived_at IS NOT NULL)"


def _fingerprint(rows: Sequence[sqlite3.Row]) -> str | None:
    return sha256(repr(tuple(rows[0])).encode()).hexdigest() if rows else None
