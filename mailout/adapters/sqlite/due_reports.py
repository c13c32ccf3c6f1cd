"""Reports that are still due, on SQLite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mailout.adapters.sqlite.database import Database
from mailout.error_log import ErrorRecord


class SqliteDueReports:
    """Fulfils `DueReports`."""

    db: Database

    def ask_report(self, mailout: str) -> None:
        with self.db.write() as tx:
            tx.execute(
                "INSERT INTO page_reports (mailout) VALUES (?)"
                " ON CONFLICT (mailout) DO UPDATE SET asked = asked + 1",
                (mailout,),
            )

    def due_reports(self) -> Mapping[str, int]:
        rows = self.db.read("SELECT mailout, asked FROM page_reports WHERE told < asked ORDER BY mailout")
        return {row["mailout"]: row["asked"] for row in rows}

    def report_made(self, mailout: str, asked: int) -> None:
        with self.db.write() as tx:
            tx.execute(
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
