"""A subscriber's status on SQLite: as events and soft bounces change it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import astuple

from mailout.outbox.feedback.port import StatusChange
from mailout.outbox.feedback.subscriber_state import SOFT_BOUNCES, SubscriberState, after, with_soft

_SOFT_END = """
WITH soft AS (
    SELECT e.event_at AS at, coalesce(e.message_id, e.provider_message_id, e.id) AS message,
           coalesce(e.detail ->> '$.bounceType', 'Undetermined') AS type,
           e.detail ->> '$.bounceSubType' AS subtype, e.detail ->> '$.status' AS status,
           (SELECT count(*) FROM delivery_events d WHERE d.email = e.email AND d.event_type = 'delivered'
             AND d.event_at < e.event_at) AS run
    FROM delivery_events e WHERE e.email = :email AND e.event_type = 'bounce' AND e.event_at > :since
), counted AS (
    SELECT * FROM soft WHERE type <> 'Permanent'
    AND NOT (type = 'Transient' AND coalesce(subtype, '') = 'General' AND status IS NULL)
)
SELECT type, subtype, at FROM counted
WHERE run IN (SELECT run FROM counted GROUP BY run HAVING count(DISTINCT message) >= :enough)
ORDER BY at DESC, type DESC, coalesce(subtype, '') DESC LIMIT 1"""
"""A run is what lies between two deliveries, after the last confirmed sign-up. General bounces without a
status are out-of-office replies."""


def change_status(tx: sqlite3.Connection, email: str, change: StatusChange) -> bool:
    """Whether the subscriber stands differently now. Who is no subscriber stays none."""
    known = _known(tx, email)
    if known is None:
        return False
    tx.execute("DELETE FROM desk_unsubscribes WHERE email = ?", (email,))
    hard, soft = known
    return _write(tx, email, known, (after(hard, change), soft))


def count_soft_bounces(tx: sqlite3.Connection, told: Iterable[tuple[str, bool]]) -> int:
    """Of addresses with a new soft bounce, or a delivery; how many stand differently now.

    A delivery matters only to whom soft bounces have ended mail for.
    """
    bounced = {email for email, is_bounce in told if is_bounce}
    delivered = {email for email, is_bounce in told if not is_bounce} - bounced
    ended = tx.execute(
        "SELECT email_norm FROM subscribers WHERE hard_status IS NOT NULL"
        " AND email_norm IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(delivered)),),
    )
    emails = sorted(bounced | {row["email_norm"] for row in ended})
    return sum(_count_soft_bounces(tx, email) for email in emails)


def _count_soft_bounces(tx: sqlite3.Connection, email: str) -> bool:
    known = _known(tx, email)
    if known is None:
        return False
    since = known[0].confirmed_at or 0.0
    row = tx.execute(_SOFT_END, {"email": email, "enough": SOFT_BOUNCES, "since": since}).fetchone()
    soft = None if row is None else SubscriberState("bounced", row["at"], row["type"], row["subtype"])
    return _write(tx, email, known, (known[0], soft))


Known = tuple[SubscriberState, SubscriberState | None]
"""What a status is without soft bounces, and what they have made of it."""


def _known(tx: sqlite3.Connection, email: str) -> Known | None:
    row = tx.execute(
        "SELECT status, status_updated_at, bounce_type, bounce_subtype, complained_at, confirmed_at,"
        " hard_status, hard_status_at FROM subscribers WHERE email_norm = ?",
        (email,),
    ).fetchone()
    if row is None:
        return None
    shown = SubscriberState(*row[:6])
    if row["hard_status"] is None:
        return shown, None
    hard = SubscriberState(
        row["hard_status"],
        row["hard_status_at"],
        complained_at=shown.complained_at,
        confirmed_at=shown.confirmed_at,
    )
    return hard, shown


def _write(tx: sqlite3.Connection, email: str, before: Known, now: Known) -> bool:
    (shown_before, hard_before), (shown, hard) = with_soft(*before), with_soft(*now)
    if (shown, hard) == (shown_before, hard_before):
        return False
    tx.execute(
        "UPDATE subscribers SET status = ?, status_updated_at = ?, bounce_type = ?, bounce_subtype = ?,"
        " complained_at = ?, confirmed_at = ?, hard_status = ?, hard_status_at = ? WHERE email_norm = ?",
        (*astuple(shown), *((hard.status, hard.status_updated_at) if hard else (None, None)), email),
    )
    return True
