"""Who was forgotten, on SQLite: known by a keyed hash of the address alone."""

from __future__ import annotations

import hmac
import json
import sqlite3
from collections.abc import Iterable


def remember(tx: sqlite3.Connection, email: str) -> None:
    tx.execute("INSERT OR IGNORE INTO forgotten VALUES (?)", (_hash(_key(tx), email),))


def release(tx: sqlite3.Connection, emails: Iterable[str]) -> None:
    """These have signed up themselves."""
    key = _key(tx)
    tx.executemany("DELETE FROM forgotten WHERE hash = ?", [(_hash(key, email),) for email in emails])


def among(tx: sqlite3.Connection, emails: Iterable[str]) -> set[str]:
    """Those of these addresses that were forgotten."""
    if tx.execute("SELECT 1 FROM forgotten LIMIT 1").fetchone() is None:
        return set()  # as nearly always: a million hashes are saved
    key = _key(tx)
    by_hash = {_hash(key, email): email for email in emails}
    found = tx.execute(
        "SELECT hash FROM forgotten WHERE hash IN (SELECT value FROM json_each(?))",
        (json.dumps(list(by_hash)),),
    )
    return {by_hash[row["hash"]] for row in found}


def _key(tx: sqlite3.Connection) -> bytes:
    (key,) = tx.execute("SELECT value FROM store_secrets WHERE name = 'forgotten'").fetchone()
    return bytes(key)


def _hash(key: bytes, email: str) -> str:
    return hmac.digest(key, email.encode(), "sha256").hex()
