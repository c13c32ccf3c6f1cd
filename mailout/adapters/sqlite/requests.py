"""Requests from outside, on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from mailout.adapters.sqlite.database import Database
from mailout.queue.port import Request, RequestKind


class SqliteRequests:
    """Fulfils `Requests`."""

    db: Database

    def ask(self, request: Request, *, repeat: float) -> bool:
        now = self.db.clock.now()
        with self.db.write() as tx:
            written = tx.execute(
                "INSERT INTO requests (ref, how, asked_at) VALUES (?, ?, ?) ON CONFLICT (ref, how)"
                " DO UPDATE SET asked_at = excluded.asked_at, answered_at = NULL WHERE asked_at <= ?",
                (request.ref, request.how, now, now - repeat),
            )
            return written.rowcount == 1

    def asked(self, waiting: float) -> Sequence[Request]:
        rows = self.db.read(
            "SELECT ref, how FROM requests WHERE answered_at IS NULL AND asked_at <= ?"
            " ORDER BY asked_at, ref",
            (self.db.clock.now() - waiting,),
        )
        return [Request(row["ref"], RequestKind(row["how"])) for row in rows]

    def answered(self, request: Request) -> None:
        with self.db.write() as tx:
            tx.execute(
                "UPDATE requests SET answered_at = ? WHERE ref = ? AND how = ? AND answered_at IS NULL",
                (self.db.clock.now(), request.ref, request.how),
            )
