"""How a flow run ends, in Prefect's words: completed, deferred, or failed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from prefect import State
from prefect.states import Cancelled, Completed, Failed

from mailout.app.engine import Engine
from mailout.outbox.queue.mailout import DeferReason, Mailout, MailoutOutcome, Status
from tasks.logs import hidden

CANCELLED_IN_PREFECT = "It was cancelled in Prefect."
"""Why a mailout is paused whose run somebody has cancelled on Prefect's pages."""


def outcome_of(engine: Engine, mailout_id: str) -> State[Any]:
    """The state that Prefect shows. A wait is no failure: its badge is green and says `Deferred`."""
    mailout = engine.store.mailout(mailout_id)
    ledger = mailout.ledger
    counts = f"{ledger.sent} sent, {ledger.failed} failed, {ledger.unknown} unknown, {ledger.pending} pending"
    if mailout.status is Status.COMPLETED and mailout.outcome is MailoutOutcome.FAILED:
        return Failed(message=f"Not everybody was reached: {counts}.", name="Failed")
    if mailout.status is Status.CANCELLED:
        return Completed(message=f"Cancelled: {counts}.", name="Cancelled by hand")
    if mailout.defer_reason is DeferReason.PAUSED and mailout.defer_note == CANCELLED_IN_PREFECT:
        return Cancelled(message=f"The mailout is paused: {counts}. To go on: resume_mailout.")
    if mailout.status is not Status.COMPLETED:
        why = hidden(_why(mailout, engine.limits.timezone))
        return Completed(message=f"{why} {counts}.", name="Deferred")
    return Completed(message=counts)


def _why(mailout: Mailout, timezone: Any) -> str:
    if mailout.defer_reason is None and mailout.started_at is None and mailout.scheduled_at is not None:
        planned = datetime.fromtimestamp(mailout.scheduled_at, timezone)
        return f"Planned for {planned:%Y-%m-%d %H:%M %Z}; until then it can be cancelled."
    if mailout.defer_reason is None:
        return "Stopped; the queue goes on with it."
    if mailout.deferred_until is None:
        note = f" {mailout.defer_note}" if mailout.defer_note else ""
        return f"{mailout.defer_reason}: waits for a person.{note}"
    until = datetime.fromtimestamp(mailout.deferred_until, timezone)
    return f"{mailout.defer_reason}: until {until:%Y-%m-%d %H:%M %Z}."
