"""Feedback on SQLite: the inbox of events, and the one transaction that applies them."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from mailout.adapters.sqlite.database import Database
from mailout.adapters.sqlite.movement import Movement
from mailout.adapters.sqlite.standing import count_soft_bounces, hear
from mailout.delivery.states import DOUBTFUL, WAITING, State
from mailout.feedback.model import (
    Applied,
    Doubts,
    Drift,
    Effect,
    EventType,
    Heard,
    InboxCounts,
    Reading,
    Received,
    Waiting,
)
from mailout.ids import uuid_of

NOT_YET_SENT = (*WAITING, *DOUBTFUL)
"""States in which an event may know more than we do."""


class SqliteFeedback:
    """Fulfils the part of `ports.Feedback` that is about events."""

    db: Database

    def receive_events(self, received: Sequence[Received]) -> int:
        with self.db.write() as tx:
            now = self.db.clock.now()
            before = tx.total_changes
            tx.executemany(
                "INSERT INTO events_inbox (id, source, payload, received_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (id) DO NOTHING",
                [(one.id, one.source, one.payload, now) for one in received],
            )
            return tx.total_changes - before

    def waiting_events(self, limit: int) -> Sequence[Waiting]:
        rows = self.db.read(
            "SELECT id, source, payload, received_at FROM events_inbox WHERE applied_at IS NULL"
            " ORDER BY received_at, id LIMIT ?",
            (limit,),
        )
        return [Waiting(*row) for row in rows]

    def apply_events(self, readings: Sequence[Reading]) -> Applied:
        with self.db.write() as tx:
            application = _Application(tx, self.db.clock.now())
            for reading in readings:
                application.apply(reading)
            return application.write()

    def inbox_counts(self) -> InboxCounts:
        (row,) = self.db.read(
            "SELECT count(*) AS waiting, min(received_at) AS oldest,"
            " (SELECT count(*) FROM events_inbox WHERE applied_at IS NOT NULL) AS applied"
            " FROM events_inbox WHERE applied_at IS NULL"
        )
        return InboxCounts(*row)

    def delivery_events(
        self, *, message_id: str | None = None, email: str | None = None, limit: int = 100
    ) -> Sequence[Mapping[str, Any]]:
        column, wanted = ("message_id", message_id) if message_id is not None else ("email", email)
        rows = self.db.read(
            f"SELECT * FROM delivery_events WHERE {column} = ? ORDER BY event_at DESC, id LIMIT ?",  # noqa: S608
            (wanted, limit),
        )
        return [{**dict(row), "detail": json.loads(row["detail"])} for row in rows]

    def hear(self, news: Mapping[str, Heard]) -> int:
        with self.db.write() as tx:
            return sum(hear(tx, email, heard) for email, heard in sorted(news.items()))

    def doubts_open(self) -> Doubts:
        (row,) = self.db.read(
            "SELECT count(*) AS unknown, min(unknown_at) AS oldest FROM email_outbox"
            " WHERE state = 'UNKNOWN'"
            " AND state IN ('FAILED', 'VALIDATION_FAILED', 'UNKNOWN')"  # names the index
        )
        return Doubts(*row)

    def usage_drift(self) -> Sequence[Drift]:
        rows = self.db.read(_DRIFT)
        return [Drift(*row) for row in rows]


_DRIFT = """
WITH charged (company, kind, key, n) AS (
    SELECT company_id, 'hour', charged_hour, count(*) FROM email_outbox
    WHERE charged_hour IS NOT NULL GROUP BY company_id, charged_hour
    UNION ALL
    SELECT company_id, 'day', charged_day, count(*) FROM email_outbox
    WHERE charged_day IS NOT NULL GROUP BY company_id, charged_day
), expected (scope, kind, key, n) AS (
    SELECT company, kind, key, n FROM charged
    UNION ALL
    SELECT 'all', kind, key, sum(n) FROM charged GROUP BY kind, key
)
SELECT e.scope, e.kind, e.key, coalesce(u.n, 0), e.n
FROM expected e LEFT JOIN usage u ON u.scope = e.scope AND u.kind = e.kind AND u.key = e.key
WHERE coalesce(u.n, 0) < e.n ORDER BY 1, 2, 3"""
"""A row remembers the buckets of its last attempt alone: a counter may say more than the rows, never less."""


def record_event(
    tx: sqlite3.Connection, message: sqlite3.Row | Mapping[str, Any] | None, effect: Effect
) -> bool:
    """One row of `delivery_events`, and the mailout's count with it; False: it was there."""
    first = (
        message is not None
        and not tx.execute(
            "SELECT 1 FROM delivery_events WHERE message_id = ? AND event_type = ?",
            (message["id"], effect.type),
        ).fetchone()
    )
    added = tx.execute(
        "INSERT INTO delivery_events (id, message_id, campaign_id, email, event_type, provider_message_id,"
        " detail, event_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
        (
            effect.id,
            message["id"] if message else None,
            message["campaign_id"] if message else None,
            # What the message was sent to: a bounce may name the address that it was forwarded to.
            message["email"] if message else effect.email,
            effect.type,
            effect.ses_message_id,
            json.dumps(dict(effect.detail), ensure_ascii=False),
            effect.at,
        ),
    ).rowcount
    if added and first and message is not None:
        count(tx, message["campaign_id"], effect.metric, +1)
    return bool(added)


def count(tx: sqlite3.Connection, campaign_id: str | None, metric: str | None, n: int) -> None:
    """A mailout's metric; an archived one's are final. None of the names needs quoting in a JSON path."""
    if metric is not None and campaign_id is not None:
        tx.execute(
            "UPDATE campaign_queue SET metrics = json_set(metrics, :path,"
            " max(0, coalesce(json_extract(metrics, :path), 0) + :n)) WHERE id = :id"
            " AND archived_at IS NULL",
            {"path": f"$.{metric}", "n": n, "id": campaign_id},
        )


class _Application:
    """A batch of readings, applied within one transaction."""

    def __init__(self, tx: sqlite3.Connection, now: float) -> None:
        self._tx = tx
        self._now = now
        self._move = Movement(tx, now)
        self._done: Counter[str] = Counter()
        self._recount: set[tuple[str, bool]] = set()  # addresses, and whether one bounced softly

    def apply(self, reading: Reading) -> None:
        waiting = self._tx.execute(
            "SELECT source, payload FROM events_inbox WHERE id = ? AND applied_at IS NULL",
            (reading.inbox_id,),
        ).fetchone()
        if waiting is None:
            return
        if reading.problem is not None:
            self._note(reading, waiting)
        for effect in reading.effects:
            self._effect(effect)
        self._tx.execute(
            "UPDATE events_inbox SET payload = NULL, applied_at = ?, error = ? WHERE id = ?",
            (self._now, ": ".join(reading.problem) if reading.problem else None, reading.inbox_id),
        )

    def write(self) -> Applied:
        self._move.write()
        self._done["statuses"] += count_soft_bounces(self._tx, self._recount)
        return Applied(**self._done)

    def _note(self, reading: Reading, waiting: sqlite3.Row) -> None:
        code, message = reading.problem or ("", "")
        self._done["problems"] += 1
        self._tx.execute(
            "INSERT INTO error_records (at, stage, provider, code, message)"
            " VALUES (?, 'feedback', 'ses', ?, ?)",
            (self._now, code, message),
        )
        if reading.dead:
            self._done["dead"] += 1
            payload = {"inbox_id": reading.inbox_id, "source": waiting["source"], "body": waiting["payload"]}
            self._tx.execute(
                "INSERT INTO dead_letters VALUES (?, 'ses-events', ?, ?, ?) ON CONFLICT DO NOTHING",
                (uuid_of("dead letter", reading.inbox_id), json.dumps(payload), message, self._now),
            )

    def _effect(self, effect: Effect) -> None:
        message = self._message(effect)
        archived = self._archived(message, effect)
        if archived is not None:
            message = None
        if not record_event(self._tx, archived or message, effect):
            self._done["repeated"] += 1
            return
        self._done["events"] += 1
        if message is not None:
            self._move_message(message, effect)
        elif archived is None:
            self._done["strangers"] += 1
        known = archived or message
        email = known["email"] if known else effect.email
        if effect.heard is not None and email is not None:
            self._done["statuses"] += hear(self._tx, email, effect.heard)
        if effect.recount and email is not None:
            self._recount.add((email, effect.type is EventType.BOUNCE))

    def _message(self, effect: Effect) -> sqlite3.Row | None:
        row: sqlite3.Row | None = None
        if effect.attempt is not None:
            row = self._tx.execute("SELECT * FROM email_outbox WHERE id = ?", (effect.attempt.id,)).fetchone()
        if row is None and effect.ses_message_id is not None:
            row = self._tx.execute(
                "SELECT * FROM email_outbox WHERE ses_message_id = ?", (effect.ses_message_id,)
            ).fetchone()
        return row

    def _archived(self, message: sqlite3.Row | None, effect: Effect) -> Mapping[str, Any] | None:
        """The name of a message that lies in an archive: the event is kept with it, and nothing moves."""
        campaign = message["campaign_id"] if message else effect.campaign_id
        if (
            campaign is None
            or not self._tx.execute(
                "SELECT 1 FROM campaign_queue WHERE id = ? AND archived_at IS NOT NULL", (campaign,)
            ).fetchone()
        ):
            return None
        if message is not None:
            return {name: message[name] for name in ("id", "campaign_id", "email")}
        id = effect.attempt.id if effect.attempt else None
        return {"id": id, "campaign_id": campaign, "email": effect.email}

    def _move_message(self, row: sqlite3.Row, effect: Effect) -> None:
        """Only the attempt that the event is about may move: an older one says nothing of the newer."""
        tagged = effect.attempt is not None and effect.attempt.epoch == row["epoch"]
        if tagged and row["state"] in NOT_YET_SENT:
            self._move.confirm(row, effect.ses_message_id)
            self._done["confirmed"] += 1
            row = self._tx.execute("SELECT * FROM email_outbox WHERE seq = ?", (row["seq"],)).fetchone()
        same = tagged or (effect.attempt is None and row["ses_message_id"] == effect.ses_message_id)
        if same and effect.revokes is not None and row["state"] == State.SENT:
            self._move.revoke(row, *effect.revokes)
            self._done["revoked"] += 1
