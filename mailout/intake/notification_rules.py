"""What a producer's row asks for now: a mail, nothing any more, nothing yet, or a person's attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any
from zoneinfo import ZoneInfo

from mailout.audience.addresses import Dropped, normalise
from mailout.intake.notification_job import MAX_ATTEMPTS, BrokenJob, preferences_of, read_time
from mailout.intake.notification_port import ProducerRow


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


def verdict(
    row: ProducerRow, *, now: float, zone: ZoneInfo, leave_other_channels: bool
) -> Skip | Fail | Wait | None:
    """Why no mail is sent for it now; None: one is."""
    if row.event is None or row.subscription is None:
        missing = "open_events" if row.event is None else "subscriptions"
        return Fail("broken_payload", f"Its row in {missing} is not there.")
    if str(row.subscription["contact_type"]).lower() != "email":
        if leave_other_channels:
            return Wait(inf)  # another channel's worker takes it
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
    until = read_time(preferences.get("snoozeUntil"))
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
