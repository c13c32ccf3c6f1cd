"""From a message's end in our outbox to what is reported to the producer's row: `(row, message) → result`."""

from __future__ import annotations

import json
from typing import Any

from mailout.delivery.states import State
from mailout.intake.notification_job import MAX_ATTEMPTS, retry_delay
from mailout.intake.notification_port import KnownMessage, ProducerRow, RowResult
from mailout.intake.notification_rules import Fail, Skip

NOT_TO_THIS_ADDRESS = ("INVALID_EMAIL", "RECIPIENT_NOT_FOUND")


def result_of(row: ProducerRow, message: KnownMessage, provider: str) -> RowResult | None:
    """None: it has not ended yet."""
    whose = {"provider": provider, "outboxId": message.id, "epoch": message.epoch}
    if message.state is State.SENT:
        sent = {"provider": provider, "providerMessageId": message.provider_message_id, "status": "sent"}
        return RowResult(row=row, status="sent", error={**sent, **whose}, event="notify_sent")
    if message.may_be_tried_again:
        return _tried(row, message, whose)
    if message.state is State.SUPPRESSED:
        return nack(row, Skip("suppressed", "The address has bounced, complained or left."), whose)
    if message.state is State.UNKNOWN:
        why = message.message or "no answer"
        return nack(row, Fail("outcome_unknown", f"It may have been sent: {why}."), whose)
    if message.state in (State.FAILED, State.VALIDATION_FAILED):
        said = message.message or message.code or "refused"
        if message.code in NOT_TO_THIS_ADDRESS:
            return nack(row, Skip("invalid_recipient", said), whose)
        return nack(row, Fail(message.code or "failed", said), whose)
    return None


def _tried(row: ProducerRow, message: KnownMessage, whose: dict[str, Any]) -> RowResult:
    attempts = row.attempts + 1
    error = {"code": message.code, "message": message.message, "status": "retryable", **whose}
    if attempts >= MAX_ATTEMPTS:
        return RowResult(row=row, status="failed", error=error, event="notify_failed")
    delay = round(retry_delay(attempts, message.retry_after), 3)
    return RowResult(row=row, status="pending", error={**error, "retryAfterSeconds": delay}, pick_in=delay)


def nack(row: ProducerRow, why: Skip | Fail, more: dict[str, Any] | None = None) -> RowResult:
    """A terminal one."""
    return RowResult(
        row=row,
        status="skipped" if isinstance(why, Skip) else "failed",
        error={"code": why.code, "message": why.message, "status": "failed", **(more or {})},
        spends_attempt=why.code != "max_attempts",  # those were counted when they were made
        event="notify_failed",
    )


def was_tried(row: ProducerRow, message: KnownMessage) -> bool:
    """Whether the row itself holds this attempt's result: we died before we could note it."""
    try:
        error = json.loads(row.notification.get("error") or "{}")
    except ValueError:
        return False
    found = error if isinstance(error, dict) else {}
    return (found.get("outboxId"), found.get("epoch")) == (message.id, message.epoch)


def looks_requeued(row: ProducerRow) -> bool:
    """As an operator leaves it; a row that was never tried looks the same."""
    return row.attempts == 0 and not row.notification.get("error")
