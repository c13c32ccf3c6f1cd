"""`step`: one round of one sender, in one transaction (ARCHITECTURE.md, "The protocol")."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace

from mailout.adapters.sqlite.capacity import (
    begin_warmup,
    capacity_left,
    company_capacity,
    read_pace,
    slow_down,
    write_pace,
)
from mailout.adapters.sqlite.claiming import begin, claimed, full_companies, next_due
from mailout.adapters.sqlite.single_mails import all_but_ours, due_in_turn, had_turn, is_served
from mailout.adapters.sqlite.transitions import Charges, Transitions
from mailout.base.ids import uuid_of
from mailout.outbox.delivery.pacing import reserve
from mailout.outbox.delivery.port import REHEARSING
from mailout.outbox.delivery.protocol import Attempt, Halt, Ledger, Step, StepReply
from mailout.outbox.delivery.single_mails import OURS
from mailout.outbox.delivery.states import DOUBTFUL, State

MOVED = "seq, id, epoch, state, campaign_id, attempt_at"
"""All that nearly every result needs of its row: reading the others, too, would take most of the time."""


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
    missing = _without_row(tx, step, now)
    if session is None:
        move.write()
        return StepReply(now=now, fenced=True, missing=missing)

    mailout_id: str | None = session["campaign_id"]
    mailout = tx.execute("SELECT * FROM campaign_queue WHERE id = ?", (mailout_id,)).fetchone()
    recovered = [_attempt(row) for row in _in_flight(tx, step.session)] if step.recover else ()
    if step.close:  # a closing session leaves no attempt in the air: what it does not speak of is unknown
        for row in _in_flight(tx, step.session):
            move.unknown(row, "its sender ended without an answer")
    halt = _halt(tx, mailout, bool(session["stop_requested"]))
    paused = halt is Halt.ALL_PAUSED and mailout_id is None  # only mails of our own leave
    if paused and any(row["company_id"] == OURS for row in _in_flight(tx, step.session)):
        halt = None  # a mail of our own waits in its hands for its slot: a pause must not take it back
    if (halt is not None and not paused) or step.want <= 0 or step.close:
        if step.pace.throttled:
            slow_down(tx, step.pace, now)
        move.write()
        ledger = _ledger(tx, mailout_id, now, step.close)
        return StepReply(now=now, halt=halt, recovered=recovered, ledger=ledger, missing=missing)

    rehearsal = session["transport"] == REHEARSING
    if mailout_id is not None and (ahead := _single_mails_ahead(tx, step, now, rehearsal, move.charges)):
        step = replace(step, want=max(0, step.want - ahead))
    company = mailout["company_id"] if mailout else None
    capacity, limited = capacity_left(tx, step, now, company, move.charges)
    reservation = reserve(read_pace(tx, step.pace.scope), step.pace, now, min(step.want, capacity))
    companies = company_capacity(tx, step, now, move.charges) if mailout_id is None else {}
    grant = reservation.slots_free
    others = all_but_ours(tx) if paused else []
    full = full_companies(companies, others)
    turns = due_in_turn(tx, now, rehearsal, full, grant) if mailout_id is None else None
    rows, suppressed, wrong = begin(tx, move, step, mailout, mailout_id, now, grant, companies, turns)
    slots = reservation.take(len(rows))
    write_pace(tx, step.pace.scope, reservation.state_after(len(rows)))
    if rows:
        begin_warmup(tx, step, now)
    if mailout_id is None:
        had_turn(tx, (row["company_id"] for row in rows), now)
    move.write()
    due = None if rows else next_due(tx, mailout_id, now, full_companies(companies), rehearsal)
    next_slot = reservation.next_at if capacity and not reservation.slots_free else None
    return StepReply(
        now=now,
        halt=None if rows else halt,
        recovered=recovered,
        rows=[claimed(row, slot) for row, slot in zip(rows, slots, strict=True)],
        limited=limited if capacity == 0 else None,
        next_slot_at=next_slot if step.want else now + step.pace.yields,
        next_due_at=due,
        ledger=_ledger(tx, mailout_id, now, False),
        suppressed=suppressed,
        refused=wrong,
        missing=missing,
    )


def _single_mails_ahead(
    tx: sqlite3.Connection, step: Step, now: float, rehearsal: bool, charges: Charges
) -> int:
    """Single mails that are due, and somebody is there to send them: a mailout lets them go first."""
    if not is_served(tx, now, rehearsal):
        return 0
    full = full_companies(company_capacity(tx, step, now, charges))
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


def _without_row(tx: sqlite3.Connection, step: Step, now: float) -> Sequence[str]:
    """Results of messages that the outbox does not have: kept, each once, where a person sees them."""
    if not step.results:
        return ()
    known = {result.attempt.id: result for result in step.results}
    rows = tx.execute(
        "SELECT value FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM email_outbox WHERE id = value)",
        (json.dumps(list(known)),),
    )
    missing = [id for (id,) in rows]
    for result in (known[id] for id in missing):
        id, epoch = result.attempt.id, result.attempt.epoch
        told = {"message": id, "epoch": epoch, "state": result.state, "ses_id": result.provider_message_id}
        tx.execute(
            "INSERT INTO dead_letters VALUES (?, 'outbox', ?, 'OUTBOX_NOT_FOUND', ?) ON CONFLICT DO NOTHING",
            (uuid_of("dead letter", "outbox", id, str(epoch)), json.dumps(told), now),
        )
    return missing


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


def _in_flight(tx: sqlite3.Connection, session: str) -> Sequence[sqlite3.Row]:
    """What a session has begun and not told the end of."""
    return tx.execute(
        "SELECT * FROM email_outbox INDEXED BY email_outbox_doubt WHERE session_id = ?"
        " AND state IN ('SENT_ATTEMPT', 'UNKNOWN') AND state = 'SENT_ATTEMPT' ORDER BY seq",
        (session,),
    ).fetchall()


def _halt(tx: sqlite3.Connection, mailout: sqlite3.Row | None, stop: bool) -> Halt | None:
    if stop:
        return Halt.STOP
    if tx.execute("SELECT 1 FROM switches WHERE name = 'all_paused'").fetchone() is not None:
        return Halt.ALL_PAUSED
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
