"""What is watched, on SQLite: alerts, and what Prometheus gets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from mailout.adapters.sqlite.capacity import read_pace
from mailout.adapters.sqlite.database import Database
from mailout.insight.alerts.port import Known, Signs
from mailout.insight.metrics.port import Sample, Vitals
from mailout.outbox.delivery.states import Column

_OPEN = (
    "SELECT status, count(*) AS mailouts, sum(pending) AS pending, sum(in_flight) AS in_flight,"
    " sum(sent) AS sent, sum(failed) AS failed, sum(suppressed) AS suppressed, sum(unknown) AS unknown"
    " FROM campaign_queue INDEXED BY campaign_queue_open WHERE status IN ('PENDING', 'PROCESSING')"
    " GROUP BY status"
)
_OLDEST = "SELECT min(received_at) AS at FROM events_inbox WHERE applied_at IS NULL"


class SqliteMonitoring:
    """Fulfils `Alerts` and `Counts`."""

    db: Database

    def alert_signs(self, scope: str) -> Signs:
        now = self.db.clock.now()
        quota = self.db.read("SELECT most FROM provider_quota WHERE scope = ?", (scope,))
        (inbox,) = self.db.read(
            "SELECT count(*) AS n, min(received_at) AS since FROM events_inbox WHERE applied_at IS NULL"
        )
        (unheard,) = self.db.read(_UNHEARD)
        holding = self.db.read("SELECT key FROM alerts WHERE ended_at IS NULL")
        return Signs(
            now=now,
            quota_most=quota[0]["most"] if quota else None,
            events_waiting=inbox["n"],
            events_waiting_since=inbox["since"],
            unheard_since=unheard["since"],
            holding=frozenset(row["key"] for row in holding),
        )

    def alerts_hold(self, keys: Sequence[str], seen_at: float) -> Sequence[Known]:
        with self.db.write() as tx:
            seen = {"keys": json.dumps(list(keys)), "seen": seen_at}
            tx.execute(
                "UPDATE alerts SET ended_at = :seen WHERE ended_at IS NULL AND since_at <= :seen"
                " AND key NOT IN (SELECT value FROM json_each(:keys))",
                seen,
            )
            tx.execute(
                "INSERT INTO alerts (key, since_at) SELECT value, :seen FROM json_each(:keys) WHERE true"
                " ON CONFLICT (key) DO UPDATE SET since_at = excluded.since_at, ended_at = NULL,"
                " failed = 0, tried_at = NULL, told_at = NULL WHERE ended_at < excluded.since_at",
                seen,
            )
            rows = tx.execute(
                "SELECT key, since_at, tries, failed, tried_at, told_at FROM alerts"
                " WHERE ended_at IS NULL AND key IN (SELECT value FROM json_each(:keys)) ORDER BY key",
                seen,
            ).fetchall()
            return [Known(*row) for row in rows]

    def claim_alert(self, known: Known) -> bool:
        claimed = self.db.change(
            "UPDATE alerts SET tries = tries + 1, failed = failed + 1, tried_at = ?"
            " WHERE key = ? AND tries = ? AND ended_at IS NULL",
            (self.db.clock.now(), known.key, known.tries),
        )
        return claimed == 1

    def alert_sent(self, key: str) -> None:
        self.db.change("UPDATE alerts SET failed = 0, told_at = ? WHERE key = ?", (self.db.clock.now(), key))

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
        with self.db.reading() as tx:
            pace = read_pace(tx, scope)
        return Vitals(
            queue={row["status"]: row["mailouts"] for row in unfinished},
            messages={c.value: sum(row[c.value] for row in unfinished) for c in Column},
            oldest_event_at=oldest["at"],
            sessions=living_senders(self.db),
            pace=pace,
        )


def living_senders(db: Database) -> int:
    (row,) = db.read(
        "SELECT count(*) AS n FROM sender_sessions WHERE closed_at IS NULL AND lease_until > ?",
        (db.clock.now(),),
    )
    return int(row["n"])


_UNHEARD = """
SELECT min(s.opened_at) AS since
FROM sender_sessions s JOIN campaign_queue q ON q.id = s.campaign_id
WHERE s.transport = 'ses' AND s.opened_at > coalesce((SELECT max(received_at) FROM events_inbox), 0)
  AND q.sent > 2 * (coalesce(json_extract(q.metrics, '$.delivered'), 0)
                    + coalesce(json_extract(q.metrics, '$.bounced'), 0))"""
"""Since when mail has left and no event has come. A retry after which nothing left is no sign: of a mailout
that SES has told of, most is known."""
