"""People who leave, on SQLite, and come back."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from mailout.adapters.sqlite.database import Database
from mailout.adapters.sqlite.feedback import EventBatch, count
from mailout.adapters.sqlite.forgetting import forgotten_among
from mailout.adapters.sqlite.segments import on_list
from mailout.base.ids import uuid_of
from mailout.outbox.feedback.port import METRIC_OF, UNDO_SECONDS, Effect, EventType


class SqliteLeaving:
    """Fulfils the part of `Feedback` that is about unsubscribing."""

    db: Database

    def unsubscribe(self, email_norm: str, list_key: str | None, message_id: str | None = None) -> bool:
        with self.db.write() as tx:
            if forgotten_among(tx, [email_norm]) and not _is_known(tx, email_norm):
                return False  # an old letter's link must not write their address down again
            now = self.db.clock.now()
            _unsubscribe(tx, now, email_norm, list_key, message_id)
            is_late = _left_before(tx, email_norm, list_key, now - UNDO_SECONDS)
            by_hand = _ended_by_hand(tx, email_norm, list_key)
            return not (is_late or by_hand) and _may_return(tx, email_norm, list_key)

    def unsubscribe_by_hand(self, email_norm: str, list_key: str | None) -> bool:
        with self.db.write() as tx:
            if not _is_subscribed(tx, email_norm, list_key):
                return False
            now = self.db.clock.now()
            _unsubscribe(tx, now, email_norm, list_key, None)
            tx.execute(
                "INSERT OR REPLACE INTO desk_unsubscribes (email, list_key, at) VALUES (?, ?, ?)",
                (email_norm, list_key or "", now),
            )
            return True

    def undo_unsubscribe(self, email_norm: str, list_key: str | None, within: float = UNDO_SECONDS) -> bool:
        with self.db.write() as tx:
            done = tx.execute(
                "SELECT 1 FROM desk_unsubscribes WHERE email = ? AND list_key = ? AND at > ?",
                (email_norm, list_key or "", self.db.clock.now() - within),
            ).fetchone()
            return done is not None and _resubscribe(tx, self.db.clock.now(), email_norm, list_key)

    def resubscribe(self, email_norm: str, list_key: str | None, within: float | None = None) -> bool:
        with self.db.write() as tx:
            now = self.db.clock.now()
            if within is not None and _left_before(tx, email_norm, list_key, now - within):
                return False
            if _ended_by_hand(tx, email_norm, list_key):
                return False  # not their act, so not theirs to take back
            return _resubscribe(tx, now, email_norm, list_key)


def _unsubscribe(
    tx: sqlite3.Connection, now: float, email: str, list_key: str | None, message_id: str | None
) -> None:
    _no_more_by_hand_alone(tx, email, list_key)
    if list_key is None:
        _insert_as_gone(tx, email, now)
        tx.execute(
            "UPDATE subscribers SET status = 'unsubscribed', status_updated_at = :now, left_at = :now"
            " WHERE email_norm = :email AND status = 'active'",
            {"now": now, "email": email},
        )
        tx.execute(  # soft bounces may be taken back; an unsubscribe stays
            "UPDATE subscribers SET hard_status = 'unsubscribed', hard_status_at = :now,"
            " left_at = :now WHERE email_norm = :email AND hard_status = 'active'",
            {"now": now, "email": email},
        )
    else:
        tx.execute(
            "INSERT INTO subscriptions (email, list_key, unsubscribed_at) VALUES (?, ?, ?)"
            " ON CONFLICT (email, list_key)"
            " DO UPDATE SET unsubscribed_at = coalesce(unsubscribed_at, excluded.unsubscribed_at)",
            (email, list_key, now),
        )
    message = _last_sent(tx, email, list_key) if message_id is None else _answered(tx, email, message_id)
    events = EventBatch(tx, now, ())
    events.record(
        message,
        Effect(
            id=_leaving_id(email, list_key, message),
            type=EventType.UNSUBSCRIBE,
            at=now,
            email=email,
            provider_message_id=message["ses_message_id"] if message else None,
            detail={} if list_key is None else {"list_key": list_key},
        ),
    )
    events.write()


def _resubscribe(tx: sqlite3.Connection, now: float, email: str, list_key: str | None) -> bool:
    if not _may_return(tx, email, list_key):
        return False
    tx.execute("DELETE FROM desk_unsubscribes WHERE email = ? AND list_key = ?", (email, list_key or ""))
    left = tx.execute(
        "SELECT CASE WHEN ?2 IS NULL THEN (SELECT left_at FROM subscribers WHERE email_norm = ?1)"
        " ELSE (SELECT unsubscribed_at FROM subscriptions WHERE email = ?1 AND list_key = ?2) END AS at",
        (email, list_key),
    ).fetchone()
    if list_key is None:
        tx.execute(
            "UPDATE subscribers SET status = 'active', status_updated_at = ?, left_at = NULL"
            " WHERE email_norm = ? AND status = 'unsubscribed'",
            (now, email),
        )
    else:
        tx.execute(
            "UPDATE subscriptions SET unsubscribed_at = NULL WHERE email = ? AND list_key = ?",
            (email, list_key),
        )
    tx.execute("DELETE FROM import_people WHERE email = ?", (email,))  # they have spoken for themselves
    if left["at"] is not None:
        _take_back(tx, email, list_key, left["at"])
    return True


def _is_known(tx: sqlite3.Connection, email: str) -> bool:
    return tx.execute("SELECT 1 FROM subscribers WHERE email_norm = ?", (email,)).fetchone() is not None


def _is_subscribed(tx: sqlite3.Connection, email: str, list_key: str | None) -> bool:
    if list_key is None:
        sql = "SELECT 1 FROM subscribers WHERE email_norm = ?1 AND status = 'active' AND ?2 IS NULL"
    else:
        sql = f"SELECT 1 FROM subscribers WHERE email_norm = ?1 AND {on_list('email_norm', '?2')}"  # noqa: S608
    return tx.execute(sql, (email, list_key)).fetchone() is not None


def _ended_by_hand(tx: sqlite3.Connection, email: str, list_key: str | None) -> bool:
    """By somebody at the dashboard, and so it stands."""
    asked = "SELECT 1 FROM desk_unsubscribes WHERE email = ? AND list_key = ?"
    return tx.execute(asked, (email, list_key or "")).fetchone() is not None and not _is_subscribed(
        tx, email, list_key
    )


def _no_more_by_hand_alone(tx: sqlite3.Connection, email: str, list_key: str | None) -> None:
    """They unsubscribe, too: the dashboard does not undo that, nor they what the dashboard did before."""
    rows = tx.execute(
        "SELECT list_key FROM desk_unsubscribes WHERE email = ?1 AND (list_key = ?2 OR ?2 IS NULL)",
        (email, list_key),
    )
    for (key,) in rows.fetchall():
        stands = _ended_by_hand(tx, email, key or None)
        change = "UPDATE desk_unsubscribes SET at = 0" if stands else "DELETE FROM desk_unsubscribes"
        tx.execute(f"{change} WHERE email = ? AND list_key = ?", (email, key))


def _insert_as_gone(tx: sqlite3.Connection, email: str, now: float) -> None:
    """Not known, and does not want to be written to: the next import must find that out."""
    tx.execute(
        "INSERT INTO subscribers (id, email, email_norm, status, status_updated_at, created_at)"
        " VALUES (?, ?, ?, 'unsubscribed', ?, ?) ON CONFLICT (email_norm) DO NOTHING",
        (uuid_of("subscriber", email), email, email, now, now),
    )


def _may_return(tx: sqlite3.Connection, email: str, list_key: str | None) -> bool:
    """Only to where they were: who unsubscribed by themselves, or is there still. Others' acts stay."""
    row = tx.execute(
        "SELECT status, left_at, complained_at FROM subscribers WHERE email_norm = ?", (email,)
    ).fetchone()
    if row is None or row["complained_at"] is not None:
        return False
    unsubscribed = row["status"] == "unsubscribed" and row["left_at"] is not None
    # Back on a list while gone from everything would be a promise that is not kept.
    return row["status"] == "active" or (unsubscribed and list_key is None)


def _left_before(tx: sqlite3.Connection, email: str, list_key: str | None, moment: float) -> bool:
    left = (
        "SELECT 1 FROM subscribers WHERE email_norm = ?1 AND status = 'unsubscribed' AND left_at < ?3"
        " AND ?2 IS NULL UNION ALL"
        " SELECT 1 FROM subscriptions WHERE email = ?1 AND list_key = ?2 AND unsubscribed_at < ?3"
    )
    return tx.execute(left, (email, list_key, moment)).fetchone() is not None


def _last_sent(tx: sqlite3.Connection, email: str, list_key: str | None) -> sqlite3.Row | None:
    """The message that was most likely answered: a message's id follows from its mailout and the address."""
    row: sqlite3.Row | None = tx.execute(
        "SELECT o.* FROM campaign_queue q JOIN email_outbox o ON o.id = mailout_uuid(q.id, ?1)"
        " WHERE (q.list_key IS ?2 OR (q.list_key IS NULL AND ?2 = 'general'))"
        " AND o.state = 'SENT' ORDER BY o.sent_at DESC LIMIT 1",
        (email, list_key),
    ).fetchone()
    return row


def _answered(tx: sqlite3.Connection, email: str, message_id: str) -> sqlite3.Row | Mapping[str, Any]:
    """The message whose link was followed. One that is archived has no count that could still move."""
    row: sqlite3.Row | None = tx.execute(
        "SELECT * FROM email_outbox WHERE id = ? AND email = ?", (message_id, email)
    ).fetchone()
    return row or {"id": message_id, "campaign_id": None, "email": email, "ses_message_id": None}


def _leaving_id(email: str, list_key: str | None, message: sqlite3.Row | Mapping[str, Any] | None) -> str:
    """Leaving twice after the same message is leaving once."""
    return uuid_of("unsubscribe", email, list_key or "", message["id"] if message else "")


def _take_back(tx: sqlite3.Connection, email: str, list_key: str | None, left_at: float) -> None:
    """It was a mistake: the mailouts that counted it as an unsubscribe do so no more. An earlier one, after
    which they came back, was none; and a message that another unsubscribe answers stays counted."""
    rows = tx.execute(
        "DELETE FROM delivery_events WHERE email = ? AND event_type = 'unsubscribe'"
        " AND json_extract(detail, '$.list_key') IS ? AND event_at >= ? RETURNING campaign_id, message_id",
        (email, list_key, left_at),
    ).fetchall()
    for row in rows:
        another = tx.execute(
            "SELECT 1 FROM delivery_events WHERE message_id = ? AND event_type = 'unsubscribe'",
            (row["message_id"],),
        ).fetchone()
        if another is None:
            count(tx, row["campaign_id"], METRIC_OF[EventType.UNSUBSCRIBE], -1)
