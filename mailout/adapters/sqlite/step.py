"""`step`: one round of one sender, in one transaction (ARCHITECTURE.md, "The protocol")."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mailout.adapters.sqlite.capacity import (
    begin_warmup,
    bucket_key,
    capacity_left,
    company_room,
    read_pace,
    slow_down,
    write_pace,
)
from mailout.adapters.sqlite.ledger import Charges
from mailout.adapters.sqlite.lists import on_list
from mailout.adapters.sqlite.single_mails import due_in_turn, had_turn, is_served
from mailout.adapters.sqlite.transitions import Transitions
from mailout.delivery.pacing import reserve
from mailout.delivery.port import REHEARSING
from mailout.delivery.protocol import (
    Attempt,
    Claimed,
    Halt,
    Ledger,
    Step,
    StepReply,
)
from mailout.delivery.states import DOUBTFUL, State

LEFT = """NOT EXISTS (SELECT 1 FROM subscribers s WHERE s.email_norm = o.email AND s.status = 'active')"""
LEFT_LIST = f"NOT ({on_list('o.email')})"
NEVER_AGAIN = """EXISTS (SELECT 1 FROM subscribers s WHERE s.email_norm = o.email AND (
    s.status = 'bounced' OR s.complained_at IS NOT NULL
    OR (s.status <> 'active' AND o.category IS NOT 'transactional')))"""
"""Of a message without a mailout: its recipient need not be a subscriber, but must not have left."""
MOVED = "seq, id, epoch, state, campaign_id, attempt_at"
"""All that nearly every result needs of its row: reading the others, too, would take most of the time."""
DUE = """o.seq, o.id, o.epoch, o.state, o.campaign_id, o.company_id, o.attempts, o.email, o.from_name,
    o.variables, o.request_id, o.category, o.reply_to, o.headers,
    coalesce(o.content_id, :content) AS content"""
DUE_OF_MAILOUT = """email_outbox o INDEXED BY email_outbox_due WHERE o.campaign_id IS :campaign
    AND o.state IN ('PENDING', 'RETRY_SCHEDULED') AND o.seq > :cursor
    AND (o.next_attempt_at IS NULL OR o.next_attempt_at <= :now) ORDER BY o.seq LIMIT :grant"""
DUE_SINGLE = """json_each(:turns) turn JOIN email_outbox o ON o.seq = turn.value ORDER BY turn.key"""
YIELD_SECONDS = 1.0
"""How long a mailout leaves the pace to single mails before it asks again."""
NO_RECIPIENT = """(o.recipient_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM recipients r
    WHERE r.company_id = o.company_id AND r.id = o.recipient_id
      AND r.deleted_at IS NULL AND r.email = o.email))"""


def take_step(tx: sqlite3.Connection, now: float, step: Step) -> StepReply:
    """Renew, record, and (unless fenced or halted) begin what limits and pacer allow."""
    session = tx.execute(
        "UPDATE sender_sessions SET step_no = :n, lease_until = :lease_until,"
        " closed_at = CASE WHEN :close THEN :now END"
        " WHERE id = :session AND closed_at IS NULL AND step_no < :n RETURNING campaign_id, stop_requested,"
        " transport",
        {
            "n": step.n,
            "lease_until": now + step.lease,
            "close": step.close,
            "now": now,
            "session": step.session,
        },
    ).fetchone()
    move = Transitions(tx, now)
    _record(tx, move, step)
    if session is None:
        move.write()
        return StepReply(now=now, fenced=True)

    mailout_id: str | None = session["campaign_id"]
    mailout = _mailout_row(tx, mailout_id)
    recovered = _begun(tx, step.session) if step.recover else ()
    if step.close:
        _leave_nothing(tx, move, step.session)
    halt = _halt(tx, mailout, bool(session["stop_requested"]))
    if halt is not None or step.want <= 0 or step.close:
        if step.pace.throttled:
            slow_down(tx, step.pace, now)
        move.write()
        return StepReply(
            now=now, halt=halt, recovered=recovered, ledger=_ledger(tx, mailout_id, now, step.close)
        )

    rehearsal = session["transport"] == REHEARSING
    if mailout_id is not None and (ahead := _single_mails_ahead(tx, step, now, rehearsal, move.charges)):
        step = replace(step, want=max(0, step.want - ahead))
    company = mailout["company_id"] if mailout else None
    capacity, limited = capacity_left(tx, step, now, company, move.charges)
    reservation = reserve(read_pace(tx, step.pace.scope), step.pace, now, min(step.want, capacity))
    companies = company_room(tx, step, now, move.charges) if mailout_id is None else {}
    grant = reservation.slots_free
    turns = due_in_turn(tx, now, rehearsal, _full(companies), grant) if mailout_id is None else None
    rows, left, wrong = _begin(tx, move, step, mailout, mailout_id, now, grant, companies, turns)
    slots = reservation.take(len(rows))
    write_pace(tx, step.pace.scope, reservation.state_after(len(rows)))
    if rows:
        begin_warmup(tx, step, now)
    if mailout_id is None:
        had_turn(tx, (row["company_id"] for row in rows), now)
    move.write()
    due = None if rows else _next_due(tx, mailout_id, now, _full(companies), rehearsal)
    next_slot = reservation.next_at if capacity and not reservation.slots_free else None
    return StepReply(
        now=now,
        recovered=recovered,
        rows=[_claimed(row, slot) for row, slot in zip(rows, slots, strict=True)],
        limited=limited if capacity == 0 else None,
        next_slot_at=next_slot if step.want else now + YIELD_SECONDS,
        next_due_at=due,
        ledger=_ledger(tx, mailout_id, now, False),
        suppressed=left,
        refused=wrong,
    )


def _single_mails_ahead(
    tx: sqlite3.Connection, step: Step, now: float, rehearsal: bool, charges: Charges
) -> int:
    """Single mails that are due, and somebody is there to send them: a mailout lets them go first."""
    if not is_served(tx, now, rehearsal):
        return 0
    full = _full(company_room(tx, step, now, charges))
    return len(due_in_turn(tx, now, rehearsal, full, step.want))


def _record(tx: sqlite3.Connection, move: Transitions, step: Step) -> None:
    """Results and withdrawals count by epoch alone, also from a sender that was given up."""
    sent = {result.attempt: result for result in step.results if result.state is State.SENT}
    others = {result.attempt: result for result in step.results if result.state is not State.SENT}
    if rows := _in_doubt(tx, MOVED, sent):
        move.accept(rows, [sent[_attempt(row)] for row in rows])
    for row in _in_doubt(tx, "*", others):
        move.result(row, others[_attempt(row)])
    for row in _in_doubt(tx, "*", step.withdraw):
        move.withdraw(row)


def _in_doubt(tx: sqlite3.Connection, columns: str, attempts: Iterable[Attempt]) -> Sequence[sqlite3.Row]:
    """Of these attempts, the rows that may still learn how theirs ended."""
    wanted = {(attempt.id, attempt.epoch) for attempt in attempts}
    if not wanted:
        return ()
    rows = tx.execute(
        f"SELECT {columns} FROM email_outbox WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",  # noqa: S608 (constants)
        (json.dumps(list({id for id, _ in wanted})),),
    ).fetchall()
    return [row for row in rows if row["state"] in DOUBTFUL and (row["id"], row["epoch"]) in wanted]


def _attempt(row: sqlite3.Row) -> Attempt:
    return Attempt(row["id"], row["epoch"])


def _mailout_row(tx: sqlite3.Connection, mailout_id: str | None) -> sqlite3.Row | None:
    if mailout_id is None:
        return None
    row: sqlite3.Row | None = tx.execute(
        "SELECT * FROM campaign_queue WHERE id = ?", (mailout_id,)
    ).fetchone()
    return row


def _begun(tx: sqlite3.Connection, session: str) -> Sequence[Attempt]:
    rows = tx.execute(
        "SELECT id, epoch FROM email_outbox INDEXED BY email_outbox_doubt WHERE session_id = ?"
        " AND state IN ('SENT_ATTEMPT', 'UNKNOWN') AND state = 'SENT_ATTEMPT' ORDER BY seq",
        (session,),
    )
    return [Attempt(row["id"], row["epoch"]) for row in rows]


def _leave_nothing(tx: sqlite3.Connection, move: Transitions, session: str) -> None:
    """A closing session leaves no attempt in the air: what it does not speak of is unknown."""
    rows = tx.execute(
        "SELECT * FROM email_outbox INDEXED BY email_outbox_doubt WHERE session_id = ?"
        " AND state IN ('SENT_ATTEMPT', 'UNKNOWN') AND state = 'SENT_ATTEMPT' ORDER BY id",
        (session,),
    ).fetchall()
    for row in rows:
        move.unknown(row, "its sender ended without an answer")


def _halt(tx: sqlite3.Connection, mailout: sqlite3.Row | None, stop: bool) -> Halt | None:
    paused = tx.execute("SELECT 1 FROM switches WHERE name = 'all_paused'").fetchone()
    if paused is not None:
        return Halt.ALL_PAUSED
    if stop:
        return Halt.STOP
    if mailout is None:
        return None
    if mailout["status"] == "CANCELLED":
        return Halt.CANCELLED
    if mailout["defer_reason"] == "paused":
        return Halt.PAUSED
    if mailout["status"] == "PENDING":
        return Halt.DEFERRED
    if mailout["frozen_at"] is None:
        return Halt.NOT_FROZEN
    return None


def _begin(
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
    """Due rows in order: who left is suppressed, who is wrong is refused, the others are begun."""
    if grant <= 0:
        return [], 0, 0
    left = "0"
    if mailout_id is None:
        left = NEVER_AGAIN
    elif mailout is not None and not mailout["is_test"]:
        left = f"({LEFT} OR {LEFT_LIST})"
    rows = tx.execute(
        f"SELECT {DUE}, {left} AS has_left, {NO_RECIPIENT} AS no_recipient"  # noqa: S608 (constants above)
        f" FROM {DUE_OF_MAILOUT if turns is None else DUE_SINGLE}",
        {
            "content": mailout["content_hash"] if mailout else None,
            "list_key": mailout["list_key"] if mailout else None,
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
        if row["has_left"] or (row["no_recipient"] and row["state"] == State.RETRY_SCHEDULED)
    ]
    if gone:
        move.suppress(gone, "left in the meantime")
    wrong = [row for row in rows if row["no_recipient"] and row not in gone]
    for row in wrong:
        move.refuse(row, "RECIPIENT_NOT_FOUND", "The recipient is not there, or not this company's.")
    ready = _within(capacity, [row for row in rows if not row["has_left"] and not row["no_recipient"]])
    if ready:
        hour, day = (bucket_key(step.buckets, kind, now) for kind in ("hour", "day"))
        move.begin(ready, step.session, hour, day)
    return ready, len(gone), len(wrong)


def _full(capacity: Mapping[str, int]) -> str:
    return json.dumps([company for company, left in capacity.items() if not left])


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


def _next_due(
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


def _ledger(tx: sqlite3.Connection, mailout_id: str | None, now: float, closing: bool) -> Ledger | None:
    """The counts after this step; taking them, the mailout is seen to be in somebody's hands."""
    if mailout_id is None:
        return None
    row = tx.execute(
        "UPDATE campaign_queue SET locked_at = CASE WHEN ? THEN locked_at ELSE ? END WHERE id = ?"
        " RETURNING recipients, pending, in_flight, sent, failed, suppressed, unknown",
        (closing, now, mailout_id),
    ).fetchone()
    return Ledger(*row)


def _claimed(row: sqlite3.Row, slot: float | None) -> Claimed:
    """By the order of `DUE`: looking each column up by its name takes longer than reading the row."""
    seq, id, epoch, _, mailout_id, company_id, attempts, email, from_name, variables, *rest = row
    request_id, category, reply_to, headers, content, _, _ = rest
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
    )
