"""Contents, errors, dead letters, and what is still to be reported, on SQLite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mailout.adapters.sqlite.database import Database, with_json
from mailout.base.error_log import ErrorRecord
from mailout.base.errors import NotFound
from mailout.letters.content.model import Content


class SqliteRecords:
    """Fulfils `Contents`, `ErrorLog` and `DueReports`."""

    db: Database

    def put_content(self, content: Content) -> str:
        self.db.change(
            "INSERT INTO contents VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (content.hash, content.subject, content.html, content.text, self.db.clock.now()),
        )
        return content.hash

    def content(self, content_hash: str) -> Content:
        rows = self.db.read("SELECT subject, html, text FROM contents WHERE hash = ?", (content_hash,))
        if not rows:
            raise NotFound(f"There is no content {content_hash}.")
        return Content(*rows[0])

    def record_errors(self, errors: Sequence[ErrorRecord]) -> None:
        with self.db.write() as tx:
            now = self.db.clock.now()
            tx.executemany(
                "INSERT INTO error_records (at, mailout, stage, provider, email, code, message, attempts)"
                " VALUES (:at, :mailout, :stage, :provider, :email, :code, :message, :attempts)",
                [asdict(error) | {"at": error.at or now} for error in errors],
            )

    def errors(self, mailout: str | None = None, limit: int = 100) -> Sequence[ErrorRecord]:
        rows = self.db.read(
            "SELECT code, message, stage, provider, mailout, email, attempts, at FROM error_records"
            " WHERE ? IS NULL OR mailout = ? ORDER BY id DESC LIMIT ?",
            (mailout, mailout, limit),
        )
        return [ErrorRecord(*row) for row in rows]

    def dead_letters(self, limit: int = 100) -> Sequence[Mapping[str, Any]]:
        rows = self.db.read("SELECT * FROM dead_letters ORDER BY created_at DESC, id LIMIT ?", (limit,))
        return [with_json(row, "payload") for row in rows]

    def get_dead_letter(self, id: str) -> Mapping[str, Any]:
        rows = self.db.read("SELECT * FROM dead_letters WHERE id = ?", (id,))
        if not rows:
            raise NotFound.dead_letter(id)
        return with_json(rows[0], "payload")

    def drop_dead_letter(self, id: str) -> bool:
        return self.db.change("DELETE FROM dead_letters WHERE id = ?", (id,)) == 1

    def ask_report(self, mailout: str) -> None:
        self.db.change(
            "INSERT INTO page_reports (mailout) VALUES (?) ON CONFLICT DO UPDATE SET asked = asked + 1",
            (mailout,),
        )

    def due_reports(self) -> Mapping[str, int]:
        rows = self.db.read("SELECT mailout, asked FROM page_reports WHERE told < asked ORDER BY mailout")
        return {row["mailout"]: row["asked"] for row in rows}

    def report_made(self, mailout: str, asked: int) -> None:
        self.db.change(
            "UPDATE page_reports SET told = max(told, min(?, asked)) WHERE mailout = ?", (asked, mailout)
        )

    def unreported_errors(self, since: float, limit: int = 100) -> Mapping[int, ErrorRecord]:
        rows = self.db.read(
            "SELECT id, code, message, stage, provider, mailout, email, attempts, at FROM error_records"
            " WHERE reported_at IS NULL AND at >= ? ORDER BY id LIMIT ?",
            (since, limit),
        )
        return {row["id"]: ErrorRecord(*tuple(row)[1:]) for row in rows}

    def errors_reported(self, numbers: Sequence[int]) -> None:
        with self.db.write() as tx:
            tx.executemany(
                "UPDATE error_records SET reported_at = ? WHERE id = ?",
                [(self.db.clock.now(), number) for number in numbers],
            )
