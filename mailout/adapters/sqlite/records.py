"""What is written down on SQLite: contents, errors, reports that are due, alerts, counts, history."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from mailout.adapters.sqlite.database import Database
from mailout.insight.alerts.port import KnownAlert
from mailout.insight.history.port import (
    EVENTS_COME_FOR,
    LISTED,
    REFUSALS_KEPT,
    spread,
)
from mailout.insight.metrics.port import Sample

_RECENT = """
SELECT id, sent, failed, metrics FROM campaign_queue
WHERE NOT is_test AND (sent > 0 OR failed > 0) AND coalesce(completed_at, :now) >= :since"""


class SqliteRecords:
    """Fulfils `ErrorLog`, `History`, and what `PageStore`, `AlertStore`, `MetricsStore` add."""

    db: Database

    def drop_dead_letter(self, id: str) -> bool:
        return self.db.change("DELETE FROM dead_letters WHERE id = ?", (id,)) == 1

    def ask_report(self, mailout: str) -> None:
        self.db.change(
            "INSERT INTO page_reports (mailout) VALUES (?) ON CONFLICT DO UPDATE SET asked = asked + 1",
            (mailout,),
        )

    def report_made(self, mailout: str, asked: int) -> None:
        self.db.change(
            "UPDATE page_reports SET told = max(told, min(?, asked)) WHERE mailout = ?", (asked, mailout)
        )

    def errors_reported(self, numbers: Sequence[int]) -> None:
        with self.db.write() as tx:
            tx.executemany(
                "UPDATE error_records SET reported_at = ? WHERE id = ?",
                [(self.db.clock.now(), number) for number in numbers],
            )

    def alerts_hold(self, keys: Sequence[str], seen_at: float) -> Sequence[KnownAlert]:
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
            return [KnownAlert(*row) for row in rows]

    def claim_alert(self, known: KnownAlert) -> bool:
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

    def sent_over_time(self, mailout_id: str, points: int = 60) -> Sequence[tuple[float, int]]:
        with self.db.reading() as tx:
            # Two ends of an index: SQLite would scan for `min` and `max` in one query.
            first, last = (
                tx.execute(
                    f"SELECT seq FROM email_outbox WHERE campaign_id = ? ORDER BY seq {way} LIMIT 1",  # noqa: S608
                    (mailout_id,),
                ).fetchone()
                for way in ("ASC", "DESC")
            )
            if first is None:
                return []
            (sent,) = tx.execute("SELECT sent FROM campaign_queue WHERE id = ?", (mailout_id,)).fetchone()
            found = []
            for n in range(points + 1):
                place = first["seq"] + (last["seq"] - first["seq"]) * n // points
                row = tx.execute(
                    "SELECT sent_at FROM email_outbox WHERE campaign_id = ? AND seq >= ? LIMIT 1",
                    (mailout_id, place),
                ).fetchone()
                found.append(row["sent_at"] if row else None)
        return spread([at for at in found if at is not None], sent)

    def keep_counts(self, day: str) -> None:
        people = {
            row["name"]: row["n"]
            for row in self.db.read(
                "SELECT status AS name, count(*) AS n FROM subscribers GROUP BY status"
                " UNION ALL SELECT ? || list_key, count(*) FROM subscriptions"
                " WHERE unsubscribed_at IS NULL GROUP BY list_key",
                (LISTED,),
            )
        }
        now = self.db.clock.now()
        with self.db.write() as tx:
            tx.execute("INSERT OR REPLACE INTO people_counts VALUES (?, ?)", (day, json.dumps(people)))
            for row in tx.execute(_RECENT, {"now": now, "since": now - EVENTS_COME_FOR}).fetchall():
                counts = {"sent": row["sent"], "failed": row["failed"], **json.loads(row["metrics"])}
                last = tx.execute(
                    "SELECT counts FROM mailout_counts WHERE campaign_id = ? ORDER BY at DESC LIMIT 1",
                    (row["id"],),
                ).fetchone()
                if last is None or json.loads(last["counts"]) != counts:
                    tx.execute(
                        "INSERT OR REPLACE INTO mailout_counts VALUES (?, ?, ?)",
                        (row["id"], now, json.dumps(counts)),
                    )

    def end_login(self, id: str, ends_at: float) -> bool:
        with self.db.write() as tx:
            tx.execute("DELETE FROM ended_logins WHERE ends_at <= ?", (self.db.clock.now(),))
            added = tx.execute("INSERT OR IGNORE INTO ended_logins VALUES (?, ?)", (id, ends_at))
            return added.rowcount > 0

    def requeue_dead_letter(self, id: str) -> bool:
        with self.db.write() as tx:
            found = tx.execute(
                "INSERT INTO events_inbox (id, source, payload, received_at)"
                " SELECT payload ->> 'inbox_id', payload ->> 'source', payload ->> 'body', :now"
                " FROM dead_letters WHERE id = :id AND topic = 'ses-events'"
                " ON CONFLICT (id) DO UPDATE SET payload = excluded.payload, applied_at = NULL, error = NULL,"
                " received_at = excluded.received_at",
                {"id": id, "now": self.db.clock.now()},
            )
            if not found.rowcount:
                return False
            tx.execute("DELETE FROM dead_letters WHERE id = ?", (id,))
            return True

    def keep_refusals(self, counts: Mapping[tuple[str, str], int]) -> None:
        with self.db.write() as tx:
            now = self.db.clock.now()
            tx.executemany(
                "INSERT INTO refused_requests VALUES (:path, :why, :n, :now)"
                " ON CONFLICT (path, why) DO UPDATE SET n = n + excluded.n, last_at = excluded.last_at",
                [{"path": path, "why": why, "n": n, "now": now} for (path, why), n in counts.items()],
            )
            tx.execute(
                "DELETE FROM refused_requests WHERE (path, why) NOT IN"
                " (SELECT path, why FROM refused_requests ORDER BY last_at DESC, path, why LIMIT ?)",
                (REFUSALS_KEPT,),
            )
