"""What a producer's row asks for now, and what is reported to it once its message has ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from mailout.base.addresses import Dropped, normalise
from mailout.base.clock import timestamp_of
from mailout.kinds.notifications.job import MAX_ATTEMPTS, BrokenJob, preferences_of, retry_delay
from mailout.kinds.notifications.port import KnownMessage, ProducerRow, RowResult
from mailout.outbox.delivery.states import State


@dataclass(frozen=True, slots=True)
class Skip:
    """Nobody can act on it."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Fail:
    """People should look."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Not yet; no attempt is spent."""

    seconds: float


def verdict(row: ProducerRow, *, now: float, zone: ZoneInfo) -> Skip | Fail | Wait | None:
    """Why no mail is sent for it now; None: one is."""
    if row.event is None or row.subscription is None:
        missing = "open_events" if row.event is None else "subscriptions"
        return Fail("broken_payload", f"Its row in {missing} is not there.")
    if str(row.subscription["contact_type"]).lower() != "email":
        return Skip("non_email_contact", f"Its contact is {row.subscription['contact_type']}, not e-mail.")
    if row.attempts >= MAX_ATTEMPTS:
        return Fail("max_attempts", f"It has been tried {row.attempts} times.")
    try:
        preferences = preferences_of(row.subscription)
    except BrokenJob as error:
        return Fail("broken_payload", str(error))
    return _unwanted(row.event, row.subscription, preferences, row.notified) or _not_yet(
        preferences, now=now, zone=zone
    )


def _unwanted(
    event: Mapping[str, Any], subscription: Mapping[str, Any], preferences: Mapping[str, Any], notified: int
) -> Skip | None:
    status = str(subscription["status"]).lower()
    if status in ("unsubscribed", "suppressed", "paused"):
        return Skip(status, f"The subscription is {status}.")
    if str(event["status_after"]).lower() != "open":
        return Skip("not_open", f"The section became {event['status_after']}, not open.")
    notify_on = preferences.get("notifyOn")
    if isinstance(notify_on, list) and "open" not in (str(one).lower() for one in notify_on):
        return Skip("not_wanted", "The subscription does not ask for open seats.")
    most = preferences.get("maxNotifications")
    if isinstance(most, int) and not isinstance(most, bool) and notified >= most:
        return Skip("max_notifications", f"{notified} of {most} notifications were sent.")
    if isinstance(normalise(str(subscription["contact_value"] or "")), Dropped):
        return Skip("invalid_recipient", "The address is not one that mail can reach.")
    return None


def _not_yet(preferences: Mapping[str, Any], *, now: float, zone: ZoneInfo) -> Wait | None:
    until = timestamp_of(str(preferences.get("snoozeUntil")))
    if until is not None and until > now:
        return Wait(until - now)
    window = preferences.get("deliveryWindow")
    if isinstance(window, dict):
        start, end = window.get("startMinutes", 0), window.get("endMinutes", 1440)
        if isinstance(start, int) and isinstance(end, int):
            opens_in = minutes_until(start, end, datetime.fromtimestamp(now, zone))
            if opens_in:
                return Wait(opens_in * 60.0)
    return None


def minutes_until(start: int, end: int, at: datetime) -> int:
    """Minutes until the window opens; 0: it is open. It may cross midnight; the same twice is all day."""
    minute = at.hour * 60 + at.minute
    if start == end:
        return 0
    is_open = start <= minute < end if start < end else minute >= start or minute < end
    return 0 if is_open else (start - minute) % 1440


# ── From a message's end in our outbox to what is reported to the producer's row ──

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
        return nack(row, Skip("suppressed", "The address has bounced, complained or unsubscribed."), whose)
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
