"""Times as a producer's columns hold them: each keeps the form that it has."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime

TIMES = (
    "open_event_notifications.locked_at",
    "open_event_notifications.last_attempt_at",
    "subscription_events.created_at",
    "subscriptions.last_notified_at",
)


def iso(moment: float) -> str:
    """As the producer's programs write it."""
    text = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def plain(moment: float) -> str:
    """As `datetime('now')` writes it: whole seconds, the next one, so that nothing is early."""
    return datetime.fromtimestamp(math.ceil(moment), UTC).strftime("%Y-%m-%d %H:%M:%S")


def form_of(db: sqlite3.Connection, table: str, column: str) -> Callable[[float], str]:
    """The form that the column holds; a column that holds nothing yet gets the programs' own."""
    try:
        row = db.execute(
            f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY rowid DESC LIMIT 1"  # noqa: S608
        ).fetchone()
    except sqlite3.OperationalError:  # a column that this producer does not have
        return iso
    return plain if row is not None and " " in str(row[0]) else iso
