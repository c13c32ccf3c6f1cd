"""Imports on SQLite: what each decided, what it added, and taking that back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import asdict

from mailout.adapters.sqlite.database import Database
from mailout.adapters.sqlite.transitions import Transitions
from mailout.base.errors import NotFound, StoreError
from mailout.letters.audience.port import ImportCounts, ImportRecord, SubscriberRow, Undone

_MAILED = """SELECT 1 FROM campaign_queue q
    WHERE NOT q.is_rehearsal AND NOT q.is_test
      AND coalesce(q.completed_at, q.locked_at, q.started_at, q.created_at) >= :at
      AND (q.archived_at IS NOT NULL AND q.sent > 0  -- its messages are elsewhere: nobody can tell to whom
           OR EXISTS (SELECT 1 FROM email_outbox o JOIN import_people p ON p.email = o.email
                      WHERE o.campaign_id = q.id AND o.state IN ('SENT', 'SENT_ATTEMPT', 'UNKNOWN')
                        AND p.import_id = :id AND p.list_key IN ('', q.list_key))) LIMIT 1"""

_TAKEN_BACK = """CREATE TEMP TABLE taken_back AS SELECT p.email, p.list_key FROM import_people p
    LEFT JOIN subscribers s ON s.email_norm = p.email
    WHERE p.import_id = :id AND CASE WHEN p.list_key <> '' THEN EXISTS (
            SELECT 1 FROM subscriptions l
            WHERE l.email = p.email AND l.list_key = p.list_key AND l.unsubscribed_at IS NULL)
        -- Who has said something since stays: also that they want no mail must not be lost.
        ELSE s.status_updated_at = s.created_at AND NOT EXISTS (
            SELECT 1 FROM subscriptions l WHERE l.email = p.email
              AND (l.unsubscribed_at IS NOT NULL OR NOT EXISTS (
                  SELECT 1 FROM import_people i WHERE i.import_id = p.import_id
                    AND i.email = l.email AND i.list_key = l.list_key))) END"""

_WAITING = """SELECT o.* FROM campaign_queue q JOIN email_outbox o ON o.campaign_id = q.id
    JOIN taken_back t ON t.email = o.email AND t.list_key IN ('', q.list_key)
    WHERE q.status IN ('PENDING', 'PROCESSING') AND o.state IN ('PENDING', 'RETRY_SCHEDULED')
    GROUP BY o.seq"""


class SqliteImports:
    """Fulfils the part of `Subscribers` that is about imports."""

    db: Database

    def begin_import(self, record: ImportRecord) -> None:
        self.db.change(
            "INSERT INTO imports (id, at, by, file, decisions, counts) VALUES (?, ?, ?, ?, ?, ?)",
            (
                *(record.id, self.db.clock.now(), record.by, record.file),
                *(json.dumps(record.decisions), json.dumps(record.counts)),
            ),
        )

    def undo_import(self, id: str) -> Undone:
        with self.db.write() as tx:
            row = tx.execute("SELECT * FROM imports WHERE id = ?", (id,)).fetchone()
            if row is None:
                raise NotFound(
                    f"There is no import {id}.", remedy="`mailout subscribers undo-import` lists them."
                )
            if row["undone_at"] is not None:
                raise StoreError("This import was undone already.")
            asked = {"id": id, "at": row["at"]}
            if tx.execute(_MAILED, asked).fetchone():
                raise StoreError(
                    "People of this import were mailed since.",
                    remedy="Unsubscribe who should get no more: `mailout subscribers unsubscribe EMAIL`.",
                )
            tx.execute("DROP TABLE IF EXISTS temp.taken_back")
            tx.execute(_TAKEN_BACK, asked)
            move = Transitions(tx, self.db.clock.now())
            if waiting := tx.execute(_WAITING).fetchall():
                move.suppress(waiting, "import undone")
                move.write()
            known = "list_key <> '' AND email NOT IN (SELECT email FROM taken_back WHERE list_key = '')"
            lists = tx.execute(f"SELECT count(*) FROM taken_back WHERE {known}").fetchone()[0]  # noqa: S608
            persons = "SELECT email FROM taken_back WHERE list_key = ''"
            people = tx.execute(f"DELETE FROM subscribers WHERE email_norm IN ({persons})").rowcount  # noqa: S608
            tx.execute("DELETE FROM subscriptions WHERE (email, list_key) IN (SELECT * FROM taken_back)")
            added = json.loads(row["counts"]).get("added", 0)
            tx.execute("DELETE FROM import_people WHERE import_id = ?", (id,))
            tx.execute("UPDATE imports SET undone_at = ? WHERE id = ?", (self.db.clock.now(), id))
            tx.execute("DROP TABLE temp.taken_back")
            return Undone(people, lists, added - people)


def note_added(
    tx: sqlite3.Connection,
    import_id: str | None,
    rows: Sequence[SubscriberRow],
    added: Collection[str],
    joined: Collection[tuple[str, str]],
) -> None:
    """What is new is this import's. Who was another's and comes again is nobody's to take back."""
    others = "FROM import_people WHERE import_id IS NOT ?"
    if tx.execute(f"SELECT 1 {others} LIMIT 1", (import_id,)).fetchone():
        again = [(import_id, row.email_norm, key) for row in rows for key in ("", *row.lists)]
        tx.executemany(f"DELETE {others} AND email = ? AND list_key = ?", again)
    if import_id is not None:
        new = sorted([*((email, "") for email in added), *joined])
        tx.executemany(
            "INSERT OR REPLACE INTO import_people VALUES (?, ?, ?)", [(*one, import_id) for one in new]
        )


def count_changes(tx: sqlite3.Connection, import_id: str, counts: ImportCounts) -> None:
    """A large file comes in several parts."""
    (before,) = tx.execute("SELECT counts FROM imports WHERE id = ?", (import_id,)).fetchone()
    known = json.loads(before)
    known |= {name: known.get(name, 0) + n for name, n in asdict(counts).items()}
    tx.execute("UPDATE imports SET counts = ? WHERE id = ?", (json.dumps(known), import_id))
