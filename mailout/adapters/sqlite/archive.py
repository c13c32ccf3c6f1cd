"""Old mailouts on their way out of SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from mailout.adapters.sqlite.database import Database

_IS_OVER = (
    "status IN ('COMPLETED', 'CANCELLED') AND pending + in_flight + unknown = 0 AND archived_at IS NULL"
)
WORTH_IT = 4
"""The file is made again when one part in so many is free: less would soon be used again anyway."""


class SqliteArchives:
    """Fulfils `Archives`."""

    db: Database

    def claim_archive(self, id: str, *, owner: str, token: str, lease: float) -> bool:
        with self.db.write() as tx:
            now = self.db.clock.now()
            row = _over(tx, id)
            if row is None:
                return False
            claimed = tx.execute(
                "INSERT INTO archivings VALUES (:id, :owner, :token, :until, :as_it_was)"
                " ON CONFLICT (mailout) DO UPDATE SET owner = excluded.owner, token = excluded.token,"
                " until = excluded.until, as_it_was = excluded.as_it_was"
                " WHERE owner = excluded.owner OR until < :now",
                {
                    "id": id,
                    "owner": owner,
                    "token": token,
                    "until": now + lease,
                    "as_it_was": _fingerprint(row),
                    "now": now,
                },
            )
            return claimed.rowcount == 1

    def keep_claim(self, id: str, token: str, lease: float) -> bool:
        kept = self.db.change(
            "UPDATE archivings SET until = ? WHERE mailout = ? AND token = ?",
            (self.db.clock.now() + lease, id, token),
        )
        return kept == 1

    def drop_claim(self, id: str, token: str) -> None:
        with self.db.write() as tx:
            drop_claims(tx, "mailout = ? AND token = ?", (id, token))

    def mark_archived(self, id: str, token: str, place: str) -> bool:
        with self.db.write() as tx:
            row = _over(tx, id)
            claim = tx.execute(
                "SELECT as_it_was FROM archivings WHERE mailout = ? AND token = ?", (id, token)
            ).fetchone()
            if row is None or claim is None or claim["as_it_was"] != _fingerprint(row):
                return False
            tx.execute(
                "UPDATE campaign_queue SET archived_at = ?, archived_to = ? WHERE id = ?",
                (self.db.clock.now(), place, id),
            )
            return True

    def delete_archived_events(self, id: str, ids: Sequence[str]) -> int:
        return self.db.change(
            "DELETE FROM delivery_events WHERE id IN (SELECT value FROM json_each(:ids))"  # noqa: S608
            f" AND campaign_id = :id AND {_ARCHIVED}",
            {"ids": json.dumps(list(ids)), "id": id},
        )

    def delete_archived_messages(self, id: str, *, most: int = 10_000) -> int:
        with self.db.write() as tx:
            deleted = tx.execute(
                "DELETE FROM email_outbox WHERE seq IN"  # noqa: S608
                " (SELECT seq FROM email_outbox WHERE campaign_id = :id ORDER BY seq LIMIT :most)"
                f" AND {_ARCHIVED}",
                {"id": id, "most": most},
            ).rowcount
            if not deleted:
                tx.execute(f"DELETE FROM archivings WHERE mailout = :id AND {_ARCHIVED}", {"id": id})  # noqa: S608
            return deleted

    def trim_inbox(self, before: float, *, most: int = 10_000) -> int:
        return self.db.change(
            "DELETE FROM events_inbox WHERE id IN (SELECT id FROM events_inbox WHERE applied_at < ? LIMIT ?)",
            (before, most),
        )

    def give_space_back(self) -> int:
        """`VACUUM` copies what remains, so it takes as long as that is large; nobody can write meanwhile."""
        pages, free, size = (self._pragma(name) for name in ("page_count", "freelist_count", "page_size"))
        if self._is_in_use() or free * WORTH_IT < pages:
            return 0
        self.db.compact()
        return (pages - self._pragma("page_count")) * size

    def _is_in_use(self) -> bool:
        living = "SELECT 1 FROM sender_sessions WHERE closed_at IS NULL AND lease_until > ?"
        return bool(self.db.read(living, (self.db.clock.now(),)))

    def _pragma(self, name: str) -> int:
        return int(self.db.read(f"PRAGMA {name}")[0][0])


_ARCHIVED = "EXISTS (SELECT 1 FROM campaign_queue q WHERE q.id = :id AND q.archived_at IS NOT NULL)"


def drop_claims(tx: sqlite3.Connection, which: str = "true", parameters: Sequence[Any] = ()) -> None:
    """Claims that were not carried out. Whoever held one finds out before anything is deleted."""
    tx.execute(
        f"DELETE FROM archivings WHERE {which} AND mailout IN"  # noqa: S608
        " (SELECT id FROM campaign_queue WHERE archived_at IS NULL)",
        parameters,
    )


def _over(tx: sqlite3.Connection, id: str) -> sqlite3.Row | None:
    row: sqlite3.Row | None = tx.execute(
        f"SELECT * FROM campaign_queue WHERE id = ? AND {_IS_OVER}",  # noqa: S608
        (id,),
    ).fetchone()
    return row


def _fingerprint(row: sqlite3.Row) -> str:
    return sha256(repr(tuple(row)).encode()).hexdigest()
