"""The queue on SQLite: mailouts, why they wait, and requests from outside."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mailout.adapters.sqlite.database import Database
from mailout.adapters.sqlite.transitions import Transitions
from mailout.base.errors import NotFound, StoreError
from mailout.outbox.queue.mailout import (
    LONGEST_WAIT_SECONDS,
    WAITS_FOR_A_PERSON,
    DeferReason,
    Mailout,
    NewMailout,
)
from mailout.outbox.queue.port import Request

_HELD = json.dumps(sorted(WAITS_FOR_A_PERSON))
_LONGEST = json.dumps(LONGEST_WAIT_SECONDS)
_WAITING_IN_CANCELLED = """SELECT o.seq, o.campaign_id, o.state
    FROM email_outbox o JOIN campaign_queue q ON q.id = o.campaign_id
    WHERE o.campaign_id = ? AND q.status = 'CANCELLED'
      AND o.state IN ('PENDING', 'RETRY_SCHEDULED') LIMIT ?"""
_LIST_IS_PUBLIC = "SELECT coalesce((SELECT archive FROM lists WHERE key = coalesce(?, 'general')), 0)"
SENDERS = "SELECT 1 FROM sender_sessions WHERE closed_at IS NULL AND lease_until > ?"
"""Those that are alive."""
CANCEL_PART = 20_000
"""How many are in memory at a time; they are taken back in one transaction all the same."""


_STILL_ASKED = """SELECT 1 FROM requests
    WHERE ref = ? AND how = 'real' AND answered_at IS NULL AND coalesce(not_before, 0) <= ?"""


class SqliteQueue:
    """Fulfils `Requests`, and `Queue` together with `SqliteFreezing`."""

    db: Database

    def enqueue(self, new: NewMailout, *, requested: str | None = None) -> Mailout:
        with self.db.write() as tx:
            now = self.db.clock.now()
            if requested is None or tx.execute(_STILL_ASKED, (requested, now)).fetchone():
                insert_mailout(tx, new, now)
            return get_mailout(tx, new.id)

    def mailout(self, id: str) -> Mailout:
        return mailout_of(only_row(self.db.read("SELECT * FROM campaign_queue WHERE id = ?", (id,)), id))

    def start(self, id: str, worker: str) -> Mailout:
        return self._updated(
            id,
            "UPDATE campaign_queue SET status = 'PROCESSING', locked_by = :worker, locked_at = :now,"
            " started_at = CASE WHEN status = 'PENDING' AND sent + unknown + in_flight = 0 THEN :now"
            "  ELSE coalesce(started_at, :now) END,"
            " deferred_until = NULL, defer_reason = NULL, defer_note = NULL"
            " WHERE id = :id AND (status = 'PROCESSING' OR (status = 'PENDING'"
            "  AND coalesce(scheduled_at, 0) <= :now"
            "  AND (defer_reason IS NULL OR deferred_until <= :now"
            "   OR deferred_until > :now + json_extract(:longest, '$.' || defer_reason))))",
            worker=worker,
            longest=_LONGEST,
        )

    def defer(self, id: str, reason: DeferReason, until: float | None, note: str | None = None) -> Mailout:
        if (until is None) != (reason in WAITS_FOR_A_PERSON):
            raise StoreError(f"A defer for {reason} {'has no' if until else 'needs a'} time.")
        return self._updated(  # a person's hold is never replaced by a mere wait
            id,
            "UPDATE campaign_queue SET status = 'PENDING', defer_reason = :reason,"
            " deferred_until = :until, defer_note = :note,"
            " transient_pauses = CASE"
            "  WHEN :reason <> 'transient_errors' OR status = 'PENDING' THEN transient_pauses"
            "  WHEN sent > transient_sent THEN 1 ELSE transient_pauses + 1 END,"
            " transient_sent = CASE WHEN :reason = 'transient_errors' THEN sent ELSE transient_sent END"
            " WHERE id = :id"
            " AND status IN ('PENDING', 'PROCESSING')"
            " AND (:until IS NULL OR defer_reason IS NULL"
            "  OR defer_reason NOT IN (SELECT value FROM json_each(:held)))",
            reason=reason,
            until=until,
            note=note,
            held=_HELD,
        )

    def resume(self, id: str) -> Mailout:
        return self._updated(
            id,
            "UPDATE campaign_queue SET deferred_until = NULL, defer_reason = NULL, defer_note = NULL,"
            " acknowledged = CASE defer_reason"
            "  WHEN 'reputation' THEN json_set(acknowledged, '$.sent', sent,"
            "   '$.bounced', coalesce(json_extract(metrics, '$.bounced'), 0),"
            "   '$.complained', coalesce(json_extract(metrics, '$.complained'), 0))"
            "  WHEN 'duplicate_content' THEN json_set(acknowledged, '$.duplicate_content', 1)"
            "  ELSE acknowledged END"
            " WHERE id = :id AND status = 'PENDING'",
        )

    def release(self, id: str) -> Mailout:
        return self._updated(
            id,
            "UPDATE campaign_queue SET status = 'PENDING', locked_by = NULL"
            " WHERE id = :id AND status = 'PROCESSING' AND NOT EXISTS ("
            "  SELECT 1 FROM sender_sessions s WHERE s.campaign_id = :id AND s.closed_at IS NULL"
            "   AND s.lease_until > :now)",
        )

    def cancel(self, id: str) -> Mailout:
        with self.db.write() as tx:
            now = self.db.clock.now()
            get_mailout(tx, id)
            tx.execute(
                "UPDATE campaign_queue SET status = 'CANCELLED', completed_at = ?,"
                " deferred_until = NULL, defer_reason = NULL, defer_note = NULL"
                " WHERE id = ? AND status IN ('PENDING', 'PROCESSING')",
                (now, id),
            )
            move = Transitions(tx, now)
            while waiting := tx.execute(_WAITING_IN_CANCELLED, (id, CANCEL_PART)).fetchall():
                move.suppress(waiting, "the mailout was cancelled")
            move.write()
            return get_mailout(tx, id)

    def discard_unbegun(self, id: str) -> bool:
        with self.db.write() as tx:
            unbegun = tx.execute(
                "SELECT 1 FROM campaign_queue q WHERE q.id = ? AND q.status = 'CANCELLED'"
                " AND q.archived_at IS NULL AND q.recipients = q.suppressed"
                " AND NOT EXISTS (SELECT 1 FROM email_outbox o WHERE o.campaign_id = q.id AND o.epoch > 0)",
                (id,),
            ).fetchone()
            if unbegun is not None:
                tx.execute("DELETE FROM email_outbox WHERE campaign_id = ?", (id,))
                tx.execute("DELETE FROM page_reports WHERE mailout = ?", (id,))
                tx.execute("DELETE FROM campaign_queue WHERE id = ?", (id,))
            return unbegun is not None

    def complete(self, id: str) -> Mailout:
        return self._updated(
            id,
            "UPDATE campaign_queue SET status = 'COMPLETED', completed_at = :now,"
            " deferred_until = NULL, defer_reason = NULL, defer_note = NULL,"
            " outcome = CASE WHEN failed + unknown = 0 THEN 'sent' ELSE 'failed' END"
            " WHERE id = :id AND status IN ('PENDING', 'PROCESSING') AND frozen_at IS NOT NULL"
            " AND pending + in_flight = 0",
        )

    def _updated(self, id: str, sql: str, **values: Any) -> Mailout:
        """The mailout after this update, which knows it by `:id`, and the time by `:now`."""
        with self.db.write() as tx:
            tx.execute(sql, {"id": id, "now": self.db.clock.now(), **values})
            return get_mailout(tx, id)

    def set_public(self, id: str, public: bool) -> Mailout:
        return self._updated(
            id,
            "UPDATE campaign_queue SET public = :public,"
            " published_at = CASE WHEN :public THEN :now ELSE published_at END,"
            " unpublished_at = CASE WHEN :public THEN NULL ELSE :now END"
            " WHERE id = :id AND public <> :public",
            public=public,
        )

    def pause_all(self, paused: bool) -> None:
        if paused:
            self.db.change("INSERT OR IGNORE INTO switches VALUES ('all_paused', '1')")
        else:
            self.db.change("DELETE FROM switches WHERE name = 'all_paused'")

    def set_content(self, id: str, content_hash: str, subject: str, *, replace: bool = False) -> Mailout:
        with self.db.write() as tx:
            before = get_mailout(tx, id).content_hash
            changed = tx.execute(
                "UPDATE campaign_queue SET content_hash = :content, subject = :subject"
                " WHERE id = :id AND (content_hash IS NULL OR (:replace AND status = 'PENDING'"
                "  AND in_flight + sent + failed + unknown = 0"
                "  AND NOT EXISTS (SELECT 1 FROM email_outbox o WHERE o.campaign_id = :id AND o.epoch > 0)))",
                {"content": content_hash, "subject": subject, "id": id, "replace": replace},
            ).rowcount
            if changed and before not in (None, content_hash):
                tx.execute("DELETE FROM email_outbox WHERE campaign_id = ?", (id,))
                tx.execute(
                    "UPDATE campaign_queue SET frozen_at = NULL, freeze_started_at = NULL,"
                    " freeze_cursor = '', segment_filter = NULL, recipients = 0, pending = 0, suppressed = 0"
                    " WHERE id = ?",
                    (id,),
                )
            return get_mailout(tx, id)

    def ask(self, request: Request, *, repeat: float) -> bool:
        now = self.db.clock.now()
        written = self.db.change(
            "INSERT INTO requests (ref, how, asked_at, not_before) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (ref, how) DO UPDATE SET asked_at = excluded.asked_at, answered_at = NULL,"
            " not_before = excluded.not_before"
            " WHERE asked_at <= ? OR asked_at > ?"  # the clock was ahead: a small step is none
            " OR not_before IS NOT excluded.not_before"
            " OR (answered_at IS NOT NULL AND how IN ('if_ready', 'article'))",
            (request.ref, request.how, now, request.not_before, now - repeat, now + repeat),
        )
        return written == 1

    def answered(self, request: Request) -> bool:
        answered = self.db.change(
            "UPDATE requests SET answered_at = ?, not_before = NULL"
            " WHERE ref = ? AND how = ? AND answered_at IS NULL",
            (self.db.clock.now(), request.ref, request.how),
        )
        return answered == 1


def insert_mailout(tx: sqlite3.Connection, new: NewMailout, now: float) -> bool:
    """False: it is there."""
    values = asdict(new) | {"created_at": now}
    if new.retry_plan is not None:
        values["retry_plan"] = json.dumps(values["retry_plan"])
    if new.public is None:
        values["public"] = tx.execute(_LIST_IS_PUBLIC, (new.list_key,)).fetchone()[0]
    written = tx.execute(
        f"INSERT INTO campaign_queue ({', '.join(values)})"  # noqa: S608 (our own field names)
        f" VALUES ({', '.join('?' * len(values))}) ON CONFLICT (id) DO NOTHING",
        tuple(values.values()),
    )
    return written.rowcount == 1


def get_mailout(tx: sqlite3.Connection, id: str) -> Mailout:
    return mailout_of(only_row(tx.execute("SELECT * FROM campaign_queue WHERE id = ?", (id,)).fetchall(), id))


def only_row(rows: Sequence[sqlite3.Row], id: str) -> sqlite3.Row:
    if not rows:
        raise NotFound(
            f"There is no mailout {id}.", remedy="`mailout queue list` shows those that there are."
        )
    return rows[0]


_JSON = ("retry_plan", "metrics", "acknowledged", "segment_filter")


def mailout_of(row: sqlite3.Row) -> Mailout:
    json_read = {name: json.loads(row[name] or "null") for name in _JSON}
    bools = {name: bool(row[name]) for name in ("is_test", "is_rehearsal", "public")}
    return Mailout.of(dict(row) | json_read | bools)
