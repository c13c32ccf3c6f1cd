"""Who was forgotten, on SQLite: known by a keyed hash of the address alone."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

from mailout.base.ids import keyed_hash


def remember(tx: sqlite3.Connection, email: str) -> None:
    tx.execute("INSERT OR IGNORE INTO forgotten VALUES (?)", (keyed_hash(_key(tx), email),))


def release(tx: sqlite3.Connection, emails: Iterable[str]) -> None:
    """These have signed up themselves."""
    key = _key(tx)
    tx.executemany("DELETE FROM forgotten WHERE hash = ?", [(keyed_hash(key, email),) for email in emails])


def among(tx: sqlite3.Connection, emails: Iterable[str]) -> set[str]:
    """Those of these addresses that were forgotten."""
    if tx.execute("SELECT 1 FROM forgotten LIMIT 1").fetchone() is None:
        return set()  # as nearly always: a million hashes are saved
    key = _key(tx)
    by_hash = {keyed_hash(key, email): email for email in emails}
    found = tx.execute(
        "SELECT hash FROM forgotten WHERE hash IN (SELECT value FROM json_each(?))",
        (json.dumps(list(by_hash)),),
    )
    return {by_hash[row["hash"]] for row in found}


def keep_feedback(tx: sqlite3.Connection, email: str, *kinds: str) -> None:
    """Before the address is erased: that somebody complained, or that mail bounced for good, stays known."""
    tx.execute(
        "INSERT INTO erased_feedback SELECT DISTINCT :hash, what FROM ("
        " SELECT e.event_type AS what FROM delivery_events e WHERE e.email = :email AND"
        "  (e.event_type = 'spamreport'"
        "   OR (e.event_type = 'bounce' AND e.detail ->> '$.bounceType' = 'Permanent'))"
        " UNION SELECT 'spamreport' FROM subscribers s"
        "  WHERE s.email_norm = :email AND s.complained_at IS NOT NULL)"
        " WHERE what IN (SELECT value FROM json_each(:kinds)) ON CONFLICT DO NOTHING",
        {"hash": hashed(tx, email), "email": email, "kinds": json.dumps(kinds)},
    )


def hashed(tx: sqlite3.Connection, text: str) -> str:
    """By what this store, and nobody else, knows it again."""
    return keyed_hash(_key(tx), text)


def _key(tx: sqlite3.Connection) -> bytes:
    (key,) = tx.execute("SELECT value FROM store_secrets WHERE name = 'forgotten'").fetchone()
    return bytes(key)
