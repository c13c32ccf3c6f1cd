"""What was noticed on the way, on SQLite."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from mailout.adapters.sqlite.database import Database
from mailout.history.port import REFUSALS_KEPT, Refusal, WrittenPage, WrittenPages

_PAGES = "written_pages"


class SqliteNoticed:
    """Fulfils `Noticed`."""

    db: Database

    def keep_written_pages(self, pages: Sequence[WrittenPage]) -> None:
        value = json.dumps([asdict(page) for page in pages])
        with self.db.write() as tx:
            tx.execute(
                "INSERT OR REPLACE INTO dashboard_notes VALUES (?, ?, ?)",
                (_PAGES, self.db.clock.now(), value),
            )

    def written_pages(self) -> WrittenPages | None:
        rows = self.db.read("SELECT at, value FROM dashboard_notes WHERE name = ?", (_PAGES,))
        if not rows:
            return None
        return WrittenPages(rows[0]["at"], [WrittenPage(**page) for page in json.loads(rows[0]["value"])])

    def keep_refusals(self, counts: Mapping[tuple[str, str], int]) -> None:
        with self.db.write() as tx:
            now = self.db.clock.now()
            tx.executemany(
                "INSERT INTO refused_requests VALUES (:path, :why, :n, :now, :now)"
                " ON CONFLICT (path, why) DO UPDATE SET n = n + excluded.n, last_at = excluded.last_at",
                [{"path": path, "why": why, "n": n, "now": now} for (path, why), n in counts.items()],
            )
            tx.execute(
                "DELETE FROM refused_requests WHERE (path, why) NOT IN"
                " (SELECT path, why FROM refused_requests ORDER BY last_at DESC, path, why LIMIT ?)",
                (REFUSALS_KEPT,),
            )

    def refusals(self, limit: int = 50) -> Sequence[Refusal]:
        rows = self.db.read(
            "SELECT path, why, n, first_at, last_at FROM refused_requests"
            " ORDER BY last_at DESC, path, why LIMIT ?",
            (limit,),
        )
        return [Refusal(*row) for row in rows]

    def keep_run(self, mailout_id: str, run_id: str) -> None:
        with self.db.write() as tx:
            tx.execute("INSERT OR REPLACE INTO mailout_runs VALUES (?, ?)", (mailout_id, run_id))

    def run_of(self, mailout_id: str) -> str | None:
        rows = self.db.read("SELECT run_id FROM mailout_runs WHERE campaign_id = ?", (mailout_id,))
        return str(rows[0]["run_id"]) if rows else None
