"""How a flow run ends, in Prefect's words: completed, deferred, or failed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from prefect import State
from prefect.states import Completed, Failed

from mailout.app import wiring
from mailout.outbox.queue.mailout import Mailout, MailoutOutcome, Status
from tasks.logs import hidden


def outcome_of(mailout_id: str) -> State[Any]:
    """The state that Prefect shows. A wait is no failure: its badge is green and says `Deferred`."""
    engine = wiring.engine()
    mailout = engine.store.mailout(mailout_id)
    ledger = mailout.ledger
    counts = f"{ledger.sent} sent, {ledger.failed} failed, {ledger.unknown} unknown, {ledger.pending} pending"
    if mailout.status is Status.COMPLETED and mailout.outcome is MailoutOutcome.FAILED:
        return Failed(message=f"Not everybody was reached: {counts}.", name="Failed")
    if mailout.status is Status.CANCELLED:
        return Completed(message=f"Cancelled: {counts}.", name="Cancelled by hand")
    if mailout.status is not Status.COMPLETED:
        why = hidden(_why(mailout, engine.limits.timezone))
        return Completed(message=f"{why} {counts}.", name="Deferred")
    return Completed(message=counts)


def _why(mailout: Mailout, timezone: Any) -> str:
    if mailout.defer_reason is None and mailout.started_at is None and mailout.scheduled_at is not None:
        planned = datetime.fromtimestamp(mailout.scheduled_at, timezone)
        return f"Planned for {planned:%Y-%m-%d %H:%M %Z}; until then it can be taken back."
    if mailout.defer_reason is None:
        return "Stopped; the queue goes on with it."
    if mailout.deferred_until is None:
        note = f" {mailout.defer_note}" if mailout.defer_note else ""
        return f"{mailout.defer_reason}: waits for a person.{note}"
    until = datetime.fromtimestamp(mailout.deferred_until, timezone)
    return f"{mailout.defer_reason}: until {until:%Y-%m-%d %H:%M %Z}."
