"""What Prometheus gets, on SQLite."""

from __future__ import annotations

from collections.abc import Mapping

from mailout.adapters.sqlite.database import Database
from mailout.delivery.pacing import PaceState
from mailout.delivery.states import Column
from mailout.metrics.port import Sample, Vitals

_OPEN = (
    "SELECT status, count(*) AS mailouts, sum(pending) AS pending, sum(in_flight) AS in_flight,"
    " sum(sent) AS sent, sum(failed) AS failed, sum(suppressed) AS suppressed, sum(unknown) AS unknown"
    " FROM campaign_queue INDEXED BY campaign_queue_open WHERE status IN ('PENDING', 'PROCESSING')"
    " GROUP BY status"
)
_OLDEST = "SELECT min(received_at) AS at FROM events_inbox WHERE applied_at IS NULL"
_PACE = "SELECT next_at, factor, factor_at FROM pace WHERE scope = ?"


class SqliteCounts:
    """Fulfils `Counts`."""

    db: Database

    def add_counts(self, counts: Mapping[Sample, float]) -> None:
        with self.db.write() as tx:
            tx.executemany(
                "INSERT INTO counters (name, labels, value) VALUES (?, ?, ?)"
                " ON CONFLICT (name, labels) DO UPDATE SET value = value + excluded.value",
                [(*sample, n) for sample, n in counts.items()],
            )

    def counts(self) -> Mapping[Sample, float]:
        rows = self.db.read("SELECT name, labels, value FROM counters")
        return {(row["name"], row["labels"]): row["value"] for row in rows}

    def vitals(self, scope: str) -> Vitals:
        unfinished = self.db.read(_OPEN)
        (oldest,) = self.db.read(_OLDEST)
        pace = self.db.read(_PACE, (scope,))
        return Vitals(
            queue={row["status"]: row["mailouts"] for row in unfinished},
            messages={c.value: sum(row[c.value] for row in unfinished) for c in Column},
            oldest_event_at=oldest["at"],
            sessions=living_senders(self.db),
            pace=PaceState(*pace[0]) if pace else PaceState(),
        )


def living_senders(db: Database) -> int:
    (row,) = db.read(
        "SELECT count(*) AS n FROM sender_sessions WHERE closed_at IS NULL AND lease_until > ?",
        (db.clock.now(),),
    )
    return int(row["n"])
