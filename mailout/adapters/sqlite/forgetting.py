"""People who are forgotten, on SQLite: erased, and known again by a keyed hash of the address alone."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable
from typing import Any

from mailout.adapters.sqlite.database import Database
from mailout.adapters.sqlite.transitions import Transitions
from mailout.base.addresses import without_address
from mailout.base.errors import StoreError
from mailout.base.ids import keyed_hash
from mailout.outbox.delivery.states import WAITING, State
from mailout.outbox.feedback.port import Forgotten

_FOR_GOOD = """(e.event_type = 'spamreport'
    OR (e.event_type = 'bounce' AND e.detail ->> '$.bounceType' = 'Permanent'))"""


class SqliteForgetting:
    """Fulfils the part of `Feedback` that is about erasing."""

    db: Database

    def forget(self, email_norm: str, instead: str) -> Forgotten:
        done = self._forget(email_norm, instead)
        self.db.empty_wal()
        return done

    def _forget(self, email_norm: str, instead: str) -> Forgotten:
        with self.db.write() as tx:
            rows = _messages(tx, email_norm)
            if any(row["state"] == State.SENT_ATTEMPT for row in rows):
                raise StoreError("A message to this address is on its way.", remedy="Try again in a minute.")
            waiting = [row for row in rows if row["state"] in WAITING]
            if waiting:
                move = Transitions(tx, self.db.clock.now())
                move.suppress(waiting, "forgotten")
                move.write()
                rows = _messages(tx, email_norm)  # they say now why they were not sent
            _erase_messages(tx, rows, email_norm, instead)
            tx.execute(  # for `archive_state`
                "INSERT INTO counters (name, labels, value) VALUES ('forgotten', '', 1)"
                " ON CONFLICT (name, labels) DO UPDATE SET value = value + 1"
            )
            keep_feedback(tx, email_norm, "spamreport")  # nobody asks them again
            people = tx.execute("DELETE FROM subscribers WHERE email_norm = ?", (email_norm,)).rowcount
            tx.execute("DELETE FROM subscriptions WHERE email = ?", (email_norm,))
            tx.execute("DELETE FROM consents WHERE email = ?", (email_norm,))
            tx.execute("DELETE FROM recipients WHERE email = ?", (email_norm,))
            tx.execute("DELETE FROM import_people WHERE email = ?", (email_norm,))
            tx.execute("DELETE FROM desk_unsubscribes WHERE email = ?", (email_norm,))
            tx.execute(
                "INSERT OR REPLACE INTO forgotten VALUES (?, ?)",
                (hashed(tx, email_norm), self.db.clock.now()),
            )
            events = tx.execute(
                "UPDATE delivery_events SET email = ?, detail = '{}' WHERE email = ?", (instead, email_norm)
            ).rowcount
            return Forgotten(
                subscribers=people,
                messages=len(rows),
                events=events,
                errors=_erase_records(tx, email_norm, instead),
                mailouts=tuple(sorted({row["campaign_id"] for row in rows if row["campaign_id"]})),
            )


def _messages(tx: sqlite3.Connection, email: str) -> list[sqlite3.Row]:
    return tx.execute("SELECT * FROM email_outbox WHERE email = ?", (email,)).fetchall()


def _erase_messages(tx: sqlite3.Connection, rows: list[sqlite3.Row], email: str, instead: str) -> None:
    def without(text: str | None) -> str | None:
        return None if text is None else without_address(text, email, instead)

    tx.executemany(
        "UPDATE email_outbox SET email = ?, from_name = NULL, variables = NULL, recipient_id = NULL,"
        " error_message = ?, history = ?, reply_to = NULL, headers = NULL, dedupe_key = NULL,"
        " request_id = NULL,"
        " content_id = CASE WHEN campaign_id IS NULL THEN NULL ELSE content_id END WHERE seq = ?",
        [(instead, without(r["error_message"]), without(r["history"]), r["seq"]) for r in rows],
    )
    # What was written to this person alone goes, too.
    own = {r["content_id"] for r in rows if r["campaign_id"] is None and r["content_id"] is not None}
    tx.executemany(
        "DELETE FROM contents WHERE hash = :hash"
        " AND NOT EXISTS (SELECT 1 FROM email_outbox WHERE content_id = :hash)"
        " AND NOT EXISTS (SELECT 1 FROM campaign_queue WHERE content_hash = :hash)",
        [{"hash": hash} for hash in sorted(own)],
    )


def _erase_records(tx: sqlite3.Connection, email: str, instead: str) -> int:
    """Errors, dead letters and the log of acts, in which the address may also stand within a sentence."""
    names: dict[str, Any] = {"email": email, "instead": instead}
    errors = tx.execute(
        "UPDATE error_records SET email = CASE WHEN email = :email THEN :instead ELSE email END,"
        " message = mailout_without(message, :email, :instead)"
        " WHERE email = :email OR mailout_without(message, :email, :instead) <> message",
        names,
    ).rowcount
    # Within JSON an address may be escaped: compare it as JSON would write it.
    tx.execute(
        "UPDATE dead_letters SET payload = mailout_without(payload, :quoted, :instead),"
        " error = mailout_without(error, :email, :instead)"
        " WHERE mailout_without(payload, :quoted, :instead) <> payload"
        " OR mailout_without(error, :email, :instead) <> error",
        names | {"quoted": json.dumps(email)[1:-1]},
    )
    tx.execute(
        "UPDATE dashboard_acts SET who = mailout_without(who, :email, :instead)"
        " WHERE mailout_without(who, :email, :instead) <> who",
        names,
    )
    return errors


def release_forgotten(tx: sqlite3.Connection, emails: Iterable[str]) -> None:
    """These have signed up themselves."""
    key = _key(tx)
    tx.executemany("DELETE FROM forgotten WHERE hash = ?", [(keyed_hash(key, email),) for email in emails])


def forgotten_among(tx: sqlite3.Connection, emails: Iterable[str]) -> set[str]:
    """Those of these addresses that were forgotten."""
    return _among_hashes(tx, "forgotten WHERE true", emails)


def feedback_among(tx: sqlite3.Connection, emails: Collection[str]) -> set[tuple[str, str]]:
    """Those who complained about a mail, or whose mail bounced for good, without being subscribers."""
    found = tx.execute(
        "SELECT e.email, e.event_type FROM json_each(?) a CROSS JOIN delivery_events e"  # noqa: S608 (a constant)
        f" ON e.email = a.value AND {_FOR_GOOD}",
        (json.dumps(list(emails)),),
    )
    return {(row["email"], row["event_type"]) for row in found} | {
        (email, what)
        for what in ("spamreport", "bounce")
        for email in _among_hashes(tx, f"erased_feedback WHERE what = '{what}'", emails)
    }


def _among_hashes(tx: sqlite3.Connection, rows: str, emails: Iterable[str]) -> set[str]:
    """Those whose hash is in one of these rows."""
    if tx.execute(f"SELECT 1 FROM {rows} LIMIT 1").fetchone() is None:  # noqa: S608 (constants)
        return set()  # as nearly always: a million hashes are saved
    key = _key(tx)
    by_hash = {keyed_hash(key, email): email for email in emails}
    found = tx.execute(
        f"SELECT hash FROM {rows} AND hash IN (SELECT value FROM json_each(?))",  # noqa: S608 (constants)
        (json.dumps(list(by_hash)),),
    )
    return {by_hash[row["hash"]] for row in found}


def keep_feedback(tx: sqlite3.Connection, email: str, *kinds: str) -> None:
    """Before the address is erased: that somebody complained, or that mail bounced for good, stays known."""
    tx.execute(
        "INSERT INTO erased_feedback SELECT DISTINCT :hash, what FROM ("  # noqa: S608 (a constant)
        f" SELECT e.event_type AS what FROM delivery_events e WHERE e.email = :email AND {_FOR_GOOD}"
        " UNION SELECT 'spamreport' FROM subscribers s"
        "  WHERE s.email_norm = :email AND s.complained_at IS NOT NULL)"
        " WHERE what IN (SELECT value FROM json_each(:kinds)) ON CONFLICT DO NOTHING",
        {"hash": hashed(tx, email), "email": email, "kinds": json.dumps(kinds)},
    )


def keep_complaint(tx: sqlite3.Connection, email: str) -> None:
    """Of somebody who is forgotten already."""
    tx.execute(
        "INSERT INTO erased_feedback VALUES (?, 'spamreport') ON CONFLICT DO NOTHING", (hashed(tx, email),)
    )


def hashed(tx: sqlite3.Connection, text: str) -> str:
    """By what this store, and nobody else, knows it again."""
    return keyed_hash(_key(tx), text)


def _key(tx: sqlite3.Connection) -> bytes:
    (key,) = tx.execute("SELECT value FROM store_secrets WHERE name = 'forgotten'").fetchone()
    return bytes(key)
