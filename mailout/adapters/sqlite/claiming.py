"""Which messages a step begins: due, still wanted, valid, and within their company's limits."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence

from mailout.adapters.sqlite.capacity import bucket_key
from mailout.adapters.sqlite.segments import on_list, segment_lists
from mailout.adapters.sqlite.transitions import Transitions
from mailout.outbox.delivery.protocol import Attempt, Claimed, Step
from mailout.outbox.delivery.states import State

GONE, SNOOZED = 1, 2
SUPPRESSED = {GONE: "no longer subscribed", SNOOZED: "asked for a pause"}
_OF_SEGMENT = """EXISTS (SELECT 1 FROM subscriptions l WHERE l.email = o.email
    AND l.list_key IN (SELECT value FROM json_each(:segment_lists)) AND l.unsubscribed_at {})"""
"""On or off a list that the segment asks for. Only who was taken off since it was planned: others are in the
audience by another part of it."""
_OF_GENERAL = f"""('general' IN (SELECT value FROM json_each(:segment_lists))
    AND {on_list("o.email", "'general'")})"""  # noqa: S608 (constants)
NOT_NOW = f"""CASE WHEN NOT ({on_list("o.email", also=":segment_lists")})
    OR (:segment_lists <> '[]' AND {_OF_SEGMENT.format(">= o.created_at")}
        AND NOT {_OF_SEGMENT.format("IS NULL")} AND NOT {_OF_GENERAL})
    THEN {GONE} ELSE coalesce((
     SELECT iif(s.status <> 'active', {GONE}, iif(s.snoozed_until > :now, {SNOOZED}, 0))
     FROM subscribers s WHERE s.email_norm = o.email), {GONE}) END"""  # noqa: S608 (constants)
"""Why somebody in a mailout's audience does not get it any more; 0: they do."""
_BY_HASH = """EXISTS (SELECT 1 FROM {table} f WHERE f.hash = mailout_keyed_hash(
        (SELECT value FROM store_secrets WHERE name = 'forgotten'), {email}){what})"""
"""What is known of an address that is not kept."""


def complained(email: str) -> str:
    """A condition: whoever has this address complained once, a subscriber or not."""
    return f"""(EXISTS (SELECT 1 FROM subscribers s
        WHERE s.email_norm = {email} AND s.complained_at IS NOT NULL)
    OR EXISTS (SELECT 1 FROM delivery_events e WHERE e.email = {email} AND e.event_type = 'spamreport')
    OR {_BY_HASH.format(table="erased_feedback", email=email, what=" AND f.what = 'spamreport'")})"""  # noqa: S608 (a column's name)


NEVER_AGAIN = f"""(CASE WHEN o.category = 'confirmation' THEN {complained("o.email")} ELSE coalesce(
    (SELECT s.status = 'bounced' OR s.complained_at IS NOT NULL
         OR (s.status <> 'active' AND o.category IS NOT 'transactional')
     FROM subscribers s WHERE s.email_norm = o.email),
    EXISTS (SELECT 1 FROM delivery_events e WHERE e.email = o.email AND (e.event_type = 'spamreport'
        OR (e.event_type = 'bounce' AND e.detail ->> '$.bounceType' = 'Permanent')))
    OR {_BY_HASH.format(table="erased_feedback", email="o.email", what="")}
    OR (o.category IS NOT 'transactional'
        AND {_BY_HASH.format(table="forgotten", email="o.email", what="")})) END
    OR (o.list_key IS NOT NULL AND NOT EXISTS (SELECT 1 FROM subscriptions l
        WHERE l.email = o.email AND l.list_key = o.list_key AND l.unsubscribed_at IS NULL)))"""  # noqa: S608 (constants)
"""Of a message without a mailout: its recipient need not be a subscriber, but must not have unsubscribed.
Of who is none, what came back is known from the events alone; who asked to be forgotten has asked for more
than to be unsubscribed. The confirmation of a sign-up asks for no more than that nobody complained."""
DUE = """o.seq, o.id, o.epoch, o.state, o.campaign_id, o.company_id, o.attempts, o.email, o.from_name,
    o.variables, o.request_id, o.category, o.reply_to, o.headers, o.list_key,
    coalesce(o.content_id, :content) AS content"""
DUE_OF_MAILOUT = """email_outbox o INDEXED BY email_outbox_due WHERE o.campaign_id IS :campaign
    AND o.state IN ('PENDING', 'RETRY_SCHEDULED') AND o.seq > :cursor
    AND (o.next_attempt_at IS NULL OR o.next_attempt_at <= :now) ORDER BY o.seq LIMIT :grant"""
DUE_SINGLE = """json_each(:turns) turn JOIN email_outbox o ON o.seq = turn.value ORDER BY turn.key"""
NO_RECIPIENT = """(o.recipient_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM recipients r
    WHERE r.company_id = o.company_id AND r.id = o.recipient_id
      AND r.deleted_at IS NULL AND r.email = o.email))"""


def begin(
    tx: sqlite3.Connection,
    move: Transitions,
    step: Step,
    mailout: sqlite3.Row | None,
    mailout_id: str | None,
    now: float,
    grant: int,
    capacity: Mapping[str, int],
    turns: Sequence[int] | None,
) -> tuple[list[sqlite3.Row], int, int]:
    """Due rows in order: who unsubscribed is suppressed, who is wrong is refused, the others are begun."""
    if grant <= 0:
        return [], 0, 0
    unsubscribed = "0"
    if mailout_id is None:
        unsubscribed = NEVER_AGAIN
    elif mailout is not None and not mailout["is_test"]:
        unsubscribed = NOT_NOW
    rows = tx.execute(
        f"SELECT {DUE}, {unsubscribed} AS unsubscribed, {NO_RECIPIENT} AS no_recipient"  # noqa: S608 (constants above)
        f" FROM {DUE_OF_MAILOUT if turns is None else DUE_SINGLE}",
        {
            "content": mailout["content_hash"] if mailout else None,
            "list_key": mailout["list_key"] if mailout else None,
            "segment_lists": _segment_lists(mailout),
            "campaign": mailout_id,
            "cursor": step.cursor,
            "now": now,
            "grant": grant,
            "turns": json.dumps(turns),
        },
    ).fetchall()
    gone = [
        row
        for row in rows
        if row["unsubscribed"] or (row["no_recipient"] and row["state"] == State.RETRY_SCHEDULED)
    ]
    for why, said in SUPPRESSED.items():
        if passed_over := [row for row in gone if (row["unsubscribed"] or GONE) == why]:
            move.suppress(passed_over, said)
    wrong = [row for row in rows if row["no_recipient"] and row not in gone]
    for row in wrong:
        move.refuse(row, "RECIPIENT_NOT_FOUND", "The recipient is not there, or not this company's.")
    ready = _within(capacity, [row for row in rows if not row["unsubscribed"] and not row["no_recipient"]])
    if ready:
        hour, day = (bucket_key(step.buckets, kind, now) for kind in ("hour", "day"))
        move.begin(ready, step.session, hour, day)
    return ready, len(gone), len(wrong)


def _segment_lists(mailout: sqlite3.Row | None) -> str:
    if mailout is None or mailout["segment_filter"] is None:
        return "[]"
    return segment_lists(mailout["list_key"], json.loads(mailout["segment_filter"])["lists"])


def full_companies(capacity: Mapping[str, int], others: Sequence[str] = ()) -> str:
    """Those that may begin none, and these others, as JSON."""
    return json.dumps([*others, *(company for company, remaining in capacity.items() if not remaining)])


def _within(capacity: Mapping[str, int], rows: Sequence[sqlite3.Row]) -> list[sqlite3.Row]:
    """Of each company's rows, the first so many; the others wait."""
    if not capacity:
        return list(rows)
    begun: Counter[str] = Counter()
    kept = []
    for row in rows:
        company = row["company_id"]
        if begun[company] < capacity.get(company, len(rows)):
            begun[company] += 1
            kept.append(row)
    return kept


def next_due(
    tx: sqlite3.Connection, mailout_id: str | None, now: float, full: str, rehearsal: bool
) -> float | None:
    (due,) = tx.execute(
        "SELECT min(coalesce(next_attempt_at, 0)) FROM email_outbox INDEXED BY email_outbox_due"
        " WHERE campaign_id IS ?"
        " AND state IN ('PENDING', 'RETRY_SCHEDULED')"
        " AND company_id NOT IN (SELECT value FROM json_each(?))"
        " AND (campaign_id IS NOT NULL OR is_rehearsal = ?)",
        (mailout_id, full, rehearsal),
    ).fetchone()
    return None if due is None else max(float(due), now)


def claimed(row: sqlite3.Row, slot: float | None) -> Claimed:
    """By the order of `DUE`: looking each column up by its name takes longer than reading the row."""
    seq, id, epoch, _, mailout_id, company_id, attempts, email, from_name, variables, *rest = row
    request_id, category, reply_to, headers, list_key, content, _, _ = rest
    return Claimed(
        attempt=Attempt(id, epoch + 1),
        seq=seq,
        number=attempts + 1,
        email=email,
        content_hash=content,
        mailout_id=mailout_id,
        company_id=company_id,
        from_name=from_name,
        variables=json.loads(variables) if variables else {},
        slot=slot,
        request_id=request_id,
        category=category,
        reply_to=reply_to,
        headers=json.loads(headers) if headers else None,
        list_key=list_key,
    )
