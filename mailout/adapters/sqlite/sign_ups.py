"""Sign-ups on SQLite: their limits, confirming one, erasing those that nobody has confirmed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from mailout.adapters.sqlite.claiming import complained
from mailout.adapters.sqlite.database import Database
from mailout.adapters.sqlite.forgetting import hashed, keep_feedback, release_forgotten
from mailout.adapters.sqlite.single_mails import accept
from mailout.adapters.sqlite.subscribers import RENEWED
from mailout.base.ids import uuid_of
from mailout.insight.alerts.port import SIGN_UP_BRAKE
from mailout.insight.metrics.port import Counter
from mailout.outbox.delivery.single_mails import Verdict
from mailout.outbox.delivery.states import State
from mailout.readers.port import DAY_SECONDS, LIMITS, Asked, Confirmation, Confirmed, SignUp

_COUNT = "SELECT count(*) FROM sign_up_marks WHERE at > :since"
_COUNTED = {
    Asked.ALL: _COUNT,
    Asked.NETWORK: f"{_COUNT} AND network = :network",
    Asked.ADDRESS: f"{_COUNT} AND address = :address",
}
_COME_BACK = """UPDATE subscribers SET status = 'active', status_updated_at = :now, left_at = NULL,
    bounce_type = NULL, bounce_subtype = NULL, hard_status = NULL, hard_status_at = NULL
    WHERE email_norm = :email"""
_NAMED = """UPDATE subscribers SET attributes = json_set(attributes, '$.name', :name)
    WHERE email_norm = :email AND :name <> '' AND coalesce(attributes ->> '$.name', '') = ''"""
_UNCONFIRMED = """NOT EXISTS (SELECT 1 FROM consents c WHERE c.email = o.email AND c.at >= o.created_at)"""


_LEFT_SINCE = """SELECT 1 FROM subscribers WHERE email_norm = ?1 AND status = 'unsubscribed' AND left_at > ?2
    UNION ALL SELECT 1 FROM forgotten WHERE hash = ?3 AND at > ?2
    UNION ALL SELECT 1 FROM delivery_events WHERE email = ?1 AND event_type = 'unsubscribe' AND event_at > ?2
        AND coalesce(detail ->> '$.list_key' IN (SELECT value FROM json_each(?4)), true)"""
"""Whoever asked to join and then left, or had their data erased, has changed their mind."""


class SqliteSignUps:
    """Fulfils `SignUps`."""

    db: Database

    def ask_sign_up(self, asked: SignUp) -> Asked:
        with self.db.write() as tx:
            now = self.db.clock.now()
            mark = {
                "at": now,
                "network": hashed(tx, f"sign-up network {asked.network}"),
                "address": hashed(tx, f"sign-up address {asked.mail.email}"),
            }
            _trim(tx, now)
            verdict = _spent(tx, mark, now) or Asked.SENT
            if verdict is Asked.SENT and accept(tx, asked.mail, now).verdict is not Verdict.ACCEPTED:
                verdict = Asked.ADDRESS  # the same ask, in the outbox already
            if verdict is Asked.SENT:
                tx.execute("INSERT INTO sign_up_marks VALUES (:at, :network, :address)", mark)
                _count_days(tx, asked.day, asked.lists, "asked")
            if verdict is Asked.ALL:
                tx.execute(
                    "INSERT INTO dashboard_notes VALUES (?, ?, '{}') ON CONFLICT (name)"
                    " DO UPDATE SET at = excluded.at",
                    (SIGN_UP_BRAKE, now),
                )
            _count(tx, verdict)
            return verdict

    def confirm_sign_up(self, confirmation: Confirmation) -> Confirmed:
        email = confirmation.email
        with self.db.write() as tx:
            now = self.db.clock.now()
            if tx.execute(f"SELECT {complained(':email')}", {"email": email}).fetchone()[0]:
                return Confirmed.COMPLAINED
            done = tx.execute(
                "SELECT DISTINCT list_key FROM consents WHERE email = ? AND at >= ?", (email, confirmation.at)
            )
            new = sorted(set(confirmation.lists) - {row["list_key"] for row in done})
            if not new:
                return _as_it_stands(tx, email, confirmation.lists)
            since = (email, confirmation.at, hashed(tx, email), json.dumps(list(confirmation.lists)))
            if tx.execute(_LEFT_SINCE, since).fetchone() is not None:
                return Confirmed.OVER
            release_forgotten(tx, [email])
            row = tx.execute("SELECT status FROM subscribers WHERE email_norm = ?", (email,)).fetchone()
            was_active = row is not None and row["status"] == "active"
            if row is None:
                tx.execute(
                    "INSERT INTO subscribers (id, email, email_norm, status_updated_at, created_at)"
                    " VALUES (?, ?, ?, ?, ?)",
                    (uuid_of("subscriber", email), confirmation.written, email, now, now),
                )
            elif not was_active:
                tx.execute(_COME_BACK, {"email": email, "now": now})
            tx.execute(
                "UPDATE subscribers SET confirmed_at = ?, snoozed_until = NULL WHERE email_norm = ?",
                (now, email),
            )
            tx.execute(_NAMED, {"email": email, "name": confirmation.name})
            tx.execute("DELETE FROM import_people WHERE email = ?", (email,))  # they speak for themselves now
            tx.executemany(RENEWED, [(email, key) for key in ("", *new)])
            _join(tx, email, new, now, was_active)
            if not was_active:
                _leave_others(tx, email, confirmation.lists, now)
            tx.executemany(
                "INSERT INTO consents VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                [(email, key, now, confirmation.wording, confirmation.page) for key in new],
            )
            _count_days(tx, confirmation.day, new, "confirmed")
            _count(tx, Confirmed.JOINED)
            return Confirmed.JOINED

    def erase_sign_ups(self, before: float, most: int) -> int:
        with self.db.write() as tx:
            now = self.db.clock.now()
            _trim(tx, now)
            tx.execute(
                "UPDATE email_outbox AS o SET variables = NULL WHERE o.category = 'confirmation'"  # noqa: S608 (constants)
                " AND o.created_at <= ? AND o.variables IS NOT NULL AND o.state <> ?"
                f" AND NOT ({_UNCONFIRMED})",
                (before, State.SENT_ATTEMPT),
            )
            rows = tx.execute(
                "SELECT o.seq, o.id, o.email FROM email_outbox o WHERE o.category = 'confirmation'"  # noqa: S608 (constants)
                f" AND o.created_at <= ? AND o.state <> ? AND {_UNCONFIRMED} ORDER BY o.created_at LIMIT ?",
                (before, State.SENT_ATTEMPT, most),
            ).fetchall()
            for row in rows:
                keep_feedback(tx, row["email"], "spamreport", "bounce")
            for statement in (
                "DELETE FROM delivery_events WHERE message_id = :id",
                "DELETE FROM error_records WHERE email = :email AND mailout IS NULL",
                "DELETE FROM email_outbox WHERE seq = :seq",
            ):
                tx.executemany(statement, [dict(row) for row in rows])
            return len(rows)


def _spent(tx: sqlite3.Connection, mark: dict[str, object], now: float) -> Asked | None:
    """All of them are counted, whichever decides: each post costs the same."""
    counts = [
        (limit, tx.execute(_COUNTED[limit.of], mark | {"since": now - limit.seconds}).fetchone()[0])
        for limit in LIMITS
    ]
    return next((limit.of for limit, n in counts if n >= limit.most), None)


def _trim(tx: sqlite3.Connection, now: float) -> None:
    tx.execute("DELETE FROM sign_up_marks WHERE at <= ?", (now - DAY_SECONDS,))


def _count_days(tx: sqlite3.Connection, day: str, lists: Sequence[str], column: str) -> None:
    tx.executemany(
        f"INSERT INTO sign_up_days (day, list_key, {column}) VALUES (?, ?, 1)"  # noqa: S608 (one of two)
        f" ON CONFLICT (day, list_key) DO UPDATE SET {column} = {column} + 1",
        [(day, key) for key in sorted(set(lists))],
    )


def _count(tx: sqlite3.Connection, result: str) -> None:
    """With the act itself, so that no count is lost with a process."""
    tx.execute(
        "INSERT INTO counters (name, labels, value) VALUES (?, ?, 1)"
        " ON CONFLICT (name, labels) DO UPDATE SET value = value + 1",
        (Counter.SIGN_UPS, result),
    )


def _as_it_stands(tx: sqlite3.Connection, email: str, lists: Sequence[str]) -> Confirmed:
    (on,) = tx.execute(
        "SELECT count(*) FROM subscriptions l JOIN subscribers s ON s.email_norm = l.email"
        " WHERE l.email = ? AND s.status = 'active' AND l.unsubscribed_at IS NULL"
        " AND l.list_key IN (SELECT value FROM json_each(?))",
        (email, json.dumps(list(lists))),
    ).fetchone()
    return Confirmed.KNOWN if on == len(set(lists)) else Confirmed.OVER


def _join(tx: sqlite3.Connection, email: str, lists: Sequence[str], now: float, was_active: bool) -> None:
    """`joined_at` is now for who was not on it: those are new, and welcome. `general` is everybody's, also
    without a row."""
    tx.executemany(
        "INSERT INTO subscriptions (email, list_key, joined_at) VALUES"
        " (:email, :key, CASE WHEN :active AND :key = 'general' THEN NULL ELSE :now END)"
        " ON CONFLICT (email, list_key) DO UPDATE SET unsubscribed_at = NULL,"
        " joined_at = CASE WHEN :active AND unsubscribed_at IS NULL THEN joined_at ELSE :now END",
        [{"email": email, "key": key, "now": now, "active": was_active} for key in lists],
    )


def _leave_others(tx: sqlite3.Connection, email: str, chosen: Sequence[str], now: float) -> None:
    """`general` is everybody's: who chose another list alone says so by a row for it."""
    names = {"email": email, "now": now, "chosen": json.dumps(list(chosen))}
    tx.execute(
        "INSERT INTO subscriptions (email, list_key, unsubscribed_at)"
        " SELECT :email, key, :now FROM (SELECT key FROM lists UNION SELECT 'general')"
        " WHERE key NOT IN (SELECT value FROM json_each(:chosen)) ON CONFLICT DO NOTHING",
        names,
    )
    tx.execute(
        "UPDATE subscriptions SET unsubscribed_at = :now WHERE email = :email AND unsubscribed_at IS NULL"
        " AND list_key NOT IN (SELECT value FROM json_each(:chosen))",
        names,
    )
