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
from mailout.kinds.notifications.port import ProducerRow, RowResult
from mailout.letters.content.model import in_every_text
from mailout.outbox.delivery.error_codes import QUOTA_ERROR, TRANSIENT_ERROR
from mailout.outbox.delivery.port import Message
from mailout.outbox.delivery.states import State

LIMIT_PAUSE = 1.0
"""Seconds until a row asks again whether those before it have reached its subscription's limit."""


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
        preferences, row.notified + row.ahead, now=now, zone=zone
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
    most = _max_notifications(preferences)
    if most is not None and notified >= most:
        if most < 1:
            return Skip("max_notifications", f"The subscription allows none: maxNotifications is {most}.")
        return Skip("max_notifications", f"{notified} of {most} notifications were sent.")
    if isinstance(normalise(str(subscription["contact_value"] or "")), Dropped):
        return Skip("invalid_recipient", "The address is not one that mail can reach.")
    return None


def _max_notifications(preferences: Mapping[str, Any]) -> int | None:
    most = preferences.get("maxNotifications")
    return most if isinstance(most, int) and not isinstance(most, bool) else None


def _not_yet(
    preferences: Mapping[str, Any], with_those_ahead: int, *, now: float, zone: ZoneInfo
) -> Wait | Fail | None:
    until = timestamp_of(str(preferences.get("snoozeUntil")))
    if until is not None and until > now:
        return Wait(until - now)
    window = preferences.get("deliveryWindow")
    if isinstance(window, dict):
        start, end = window.get("startMinutes", 0), window.get("endMinutes", 1440)
        if isinstance(start, int) and isinstance(end, int):
            outside = start >= 1440, end <= 0
            if any(outside) if start < end else all(outside):
                return Fail(
                    "broken_payload", f"deliveryWindow: {start} to {end} is no time of day (0 to 1440)."
                )
            opens_in = minutes_until(start, end, datetime.fromtimestamp(now, zone))
            if opens_in:
                return Wait(opens_in * 60.0)
    most = _max_notifications(preferences)
    return Wait(LIMIT_PAUSE) if most is not None and with_those_ahead >= most else None


def minutes_until(start: int, end: int, at: datetime) -> int:
    """Minutes until the window opens; 0: it is open. It may cross midnight; the same twice is all day."""
    minute = at.hour * 60 + at.minute
    if start == end:
        return 0
    is_open = start <= minute < end if start < end else minute >= start or minute < end
    return 0 if is_open else (start - minute) % 1440


# ── From a message's end in our outbox to what is reported to the producer's row ──

TAKEN_BACK = "taken back: its row in the producer's queue asks for another mail, or for none now"
"""Why a message was not sent that its row may have another one for."""
NOT_TO_THIS_ADDRESS = ("INVALID_EMAIL", "RECIPIENT_NOT_FOUND")


def may_be_tried_again(message: Message) -> bool:
    return message["state"] == State.FAILED and message["error_category"] in (TRANSIENT_ERROR, QUOTA_ERROR)


def was_taken_back(message: Message) -> bool:
    return message["state"] == State.SUPPRESSED and message["error_message"] == TAKEN_BACK


def result_of(row: ProducerRow, message: Message, provider: str) -> RowResult | None:
    """None: it has not ended yet."""
    whose = {"provider": provider, "outboxId": message["id"], "epoch": message["epoch"]}
    state, code, said = message["state"], message["error_code"], message["error_message"]
    if state == State.SENT:
        sent = {"provider": provider, "providerMessageId": message["ses_message_id"], "status": "sent"}
        return RowResult(row=row, status="sent", error={**sent, **whose}, event="notify_sent")
    if may_be_tried_again(message):
        return _tried(row, message, whose)
    if state == State.SUPPRESSED:
        return nack(row, Skip("suppressed", "The address has bounced, complained or unsubscribed."), whose)
    if state == State.UNKNOWN:
        return nack(row, Fail("outcome_unknown", f"It may have been sent: {said or 'no answer'}."), whose)
    if state in (State.FAILED, State.VALIDATION_FAILED):
        said = said or code or "refused"
        if code in NOT_TO_THIS_ADDRESS:
            return nack(row, Skip("invalid_recipient", said), whose)
        return nack(row, Fail(code or "failed", said), whose)
    return None


def _tried(row: ProducerRow, message: Message, whose: dict[str, Any]) -> RowResult:
    attempts = row.attempts + 1
    said = {"code": message["error_code"], "message": message["error_message"]}
    error = {**said, "status": "retryable", **whose}
    if attempts >= MAX_ATTEMPTS:
        return RowResult(row=row, status="failed", error=error, event="notify_failed")
    failed_at, next_at = message["failed_at"], message["next_attempt_at"]
    asked_for = next_at - failed_at if next_at and failed_at else None  # by the provider
    delay = round(retry_delay(attempts, asked_for), 3)
    return RowResult(row=row, status="pending", error={**error, "retryAfterSeconds": delay}, pick_in=delay)


def nack(row: ProducerRow, why: Skip | Fail, more: dict[str, Any] | None = None) -> RowResult:
    """A terminal one."""
    error = {"code": why.code, "message": why.message, "status": "failed", **(more or {})}
    is_spent = why.code == "max_attempts"
    if is_spent:  # the last attempt stays, as its row holds it
        last = in_every_text(read_json(row.notification.get("error")), _storable)
        error |= {**last, "deadLetter": why.message}
    return RowResult(
        row=row,
        status="skipped" if isinstance(why, Skip) else "failed",
        error=error,
        spends_attempt=not is_spent,  # those were counted when they were made
        event="notify_failed",
    )


def _storable(text: str) -> str:
    """Without halves of characters, which JSON can hold and neither a database nor a log can."""
    return text.encode(errors="replace").decode()


def has_next_attempt(row: ProducerRow, message: Message) -> bool:
    """Its last one failed for now, and the row holds that, or held it until an operator emptied the row."""
    if not may_be_tried_again(message):
        return False
    error = read_json(row.notification.get("error"))
    if error:
        return (error.get("outboxId"), error.get("epoch")) == (message["id"], message["epoch"])
    told_at = timestamp_of(str(row.notification.get("last_attempt_at")))
    return told_at is not None and told_at >= (message["failed_at"] or 0.0)


def read_json(text: str | None) -> Mapping[str, Any]:
    """What is written in a row, which may be somebody else's; {} for what is no object."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
