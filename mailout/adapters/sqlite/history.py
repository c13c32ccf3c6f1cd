"""What the dashboard looks back on, and what was noticed on the way, on SQLite."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mailout.adapters.sqlite.database import Database
from mailout.adapters.sqlite.queue import mailout_of
from mailout.insight.history.counting import spread
from mailout.insight.history.port import (
    EVENTS_COME_FOR,
    LISTED,
    REFUSALS_KEPT,
    Act,
    Refusal,
    WrittenPage,
    WrittenPages,
)
from mailout.letters.content.port import Kind
from mailout.outbox.queue.mailout import Mailout, Status

_LETTERS = """
SELECT * FROM campaign_queue q
WHERE (:at IS NULL OR (q.created_at, q.id) < (:at, :id))
  AND q.status IN (SELECT value FROM json_each(:statuses))
  AND CASE WHEN q.is_test THEN 'test' WHEN q.is_rehearsal THEN 'rehearsal' ELSE 'real' END
      IN (SELECT value FROM json_each(:modes))
  AND (:kind IS NULL OR q.kind = :kind)
ORDER BY q.created_at DESC, q.id DESC LIMIT :limit"""
_MESSAGES_TO = """
SELECT o.*, q.subject, q.is_test, q.is_rehearsal
FROM campaign_queue q JOIN email_outbox o ON o.id = mailout_uuid(q.id, :email) AND o.email = :email
ORDER BY q.created_at DESC, q.id DESC LIMIT :limit"""
_SINGLE_MAILS_TO = """
SELECT o.*, c.subject FROM email_outbox o LEFT JOIN contents c ON c.hash = o.content_id
WHERE o.campaign_id IS NULL AND o.email = :email ORDER BY o.seq DESC LIMIT :limit"""
_NOTIFICATION_STATES = """
SELECT coalesce(o.state, 'REQUEUED') AS state, count(*) AS n
FROM (SELECT message_id FROM notifications ORDER BY noted_at DESC LIMIT :latest) n
LEFT JOIN email_outbox o ON o.id = n.message_id
WHERE CASE WHEN n.message_id IS NULL THEN NOT :rehearsal ELSE o.is_rehearsal = :rehearsal END
GROUP BY 1"""
_LATEST_NOTIFICATIONS = """
SELECT o.*, c.subject, n.requeues, n.noted_at
FROM notifications n JOIN email_outbox o ON o.id = n.message_id LEFT JOIN contents c ON c.hash = o.content_id
WHERE o.is_rehearsal = :rehearsal ORDER BY n.noted_at DESC, n.key LIMIT :limit"""
_RECENT = """
SELECT id, sent, failed, metrics FROM campaign_queue
WHERE NOT is_test AND (sent > 0 OR failed > 0) AND coalesce(completed_at, :now) >= :since"""
_PAGES = "written_pages"


class SqliteHistory:
    """Fulfils `History` and `Noticed`."""

    db: Database

    def letters(
        self,
        *,
        modes: Sequence[str],
        statuses: Sequence[Status] = (),
        kind: Kind | None = None,
        before: tuple[float, str] | None = None,
        limit: int = 50,
    ) -> Sequence[Mailout]:
        at, id = before or (None, None)
        rows = self.db.read(
            _LETTERS,
            {
                "at": at,
                "id": id,
                "statuses": json.dumps(list(statuses or Status)),
                "modes": json.dumps(list(modes)),
                "kind": kind,
                "limit": limit,
            },
        )
        return [mailout_of(row) for row in rows]

    def messages_to(self, email_norm: str, *, limit: int = 50) -> Sequence[Mapping[str, Any]]:
        return [dict(row) for row in self.db.read(_MESSAGES_TO, {"email": email_norm, "limit": limit})]

    def single_mails_to(self, email_norm: str, *, limit: int = 50) -> Sequence[Mapping[str, Any]]:
        return [dict(row) for row in self.db.read(_SINGLE_MAILS_TO, {"email": email_norm, "limit": limit})]

    def notification_states(self, *, rehearsal: bool, latest: int = 10_000) -> Mapping[str, int]:
        rows = self.db.read(_NOTIFICATION_STATES, {"rehearsal": rehearsal, "latest": latest})
        return {row["state"]: row["n"] for row in rows}

    def latest_notifications(self, *, rehearsal: bool, limit: int = 50) -> Sequence[Mapping[str, Any]]:
        rows = self.db.read(_LATEST_NOTIFICATIONS, {"rehearsal": rehearsal, "limit": limit})
        return [dict(row) for row in rows]

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

    def people_over_time(self, since: str) -> Sequence[tuple[str, Mapping[str, int]]]:
        rows = self.db.read("SELECT day, counts FROM people_counts WHERE day >= ? ORDER BY day", (since,))
        return [(row["day"], json.loads(row["counts"])) for row in rows]

    def mailout_over_time(self, mailout_id: str) -> Sequence[tuple[float, Mapping[str, int]]]:
        rows = self.db.read(
            "SELECT at, counts FROM mailout_counts WHERE campaign_id = ? ORDER BY at", (mailout_id,)
        )
        return [(row["at"], json.loads(row["counts"])) for row in rows]

    def write_act(self, act: Act) -> None:
        self.db.change(
            "INSERT INTO dashboard_acts (at, who, what, about) VALUES (?, ?, ?, ?)",
            (act.at or self.db.clock.now(), act.who, act.what, act.about),
        )

    def acts(self, limit: int = 100) -> Sequence[Act]:
        rows = self.db.read(
            "SELECT who, what, about, at FROM dashboard_acts ORDER BY id DESC LIMIT ?", (limit,)
        )
        return [Act(*row) for row in rows]

    def end_login(self, id: str, ends_at: float) -> None:
        with self.db.write() as tx:
            tx.execute("DELETE FROM ended_logins WHERE ends_at <= ?", (self.db.clock.now(),))
            tx.execute("INSERT OR REPLACE INTO ended_logins VALUES (?, ?)", (id, ends_at))

    def login_ended(self, id: str) -> bool:
        return bool(self.db.read("SELECT 1 FROM ended_logins WHERE id = ?", (id,)))

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

    def keep_written_pages(self, pages: Sequence[WrittenPage]) -> None:
        value = json.dumps([asdict(page) for page in pages])
        self.db.change(
            "INSERT OR REPLACE INTO dashboard_notes VALUES (?, ?, ?)", (_PAGES, self.db.clock.now(), value)
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
        self.db.change("INSERT OR REPLACE INTO mailout_runs VALUES (?, ?)", (mailout_id, run_id))

    def run_of(self, mailout_id: str) -> str | None:
        rows = self.db.read("SELECT run_id FROM mailout_runs WHERE campaign_id = ?", (mailout_id,))
        return str(rows[0]["run_id"]) if rows else None
