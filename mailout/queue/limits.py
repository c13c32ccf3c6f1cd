"""The limits (hour, day, window): a pure decision over now and settings. The second of three brakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from mailout.delivery.options import Ended, RunReport
from mailout.delivery.protocol import Bucket
from mailout.queue.model import DeferReason
from mailout.setting_values import SendWindow

MORNING = time(9, 0)
"""When a day begins for a mailout that met its daily limit, if no window is set."""
QUOTA_PAUSE = 3600.0
CIRCUIT_PAUSES = (60.0, 300.0, 900.0, 3600.0)


@dataclass(frozen=True, slots=True)
class Limits:
    """What may leave when. Times of day are those of `SEND_TIMEZONE`."""

    timezone: ZoneInfo
    per_hour: int | None = None
    per_day: int | None = None
    window: SendWindow | None = None
    days: frozenset[int] = frozenset(range(7))


@dataclass(frozen=True, slots=True)
class Defer:
    """A mailout waits: why, until when (None: for a person), and a sentence about it."""

    reason: DeferReason
    until: float | None
    note: str | None = None


def buckets(limits: Limits, now: float) -> Sequence[Bucket]:
    """This hour and the next, this day and the next: the store takes the ones its clock is in."""
    local = datetime.fromtimestamp(now, limits.timezone)
    hour = local.replace(minute=0, second=0, microsecond=0)
    day = hour.replace(hour=0)
    return [
        *(
            _bucket("hour", start, start + timedelta(hours=1), limits.per_hour, "%Y-%m-%dT%H%z")
            for start in (hour, _add(hour, hours=1))
        ),
        *(
            _bucket("day", start, start + timedelta(days=1), limits.per_day, "%Y-%m-%d")
            for start in (day, day + timedelta(days=1))
        ),
    ]


def _add(moment: datetime, *, hours: int) -> datetime:
    """By the clock on the wall of the world: across summer time, an hour stays an hour."""
    return datetime.fromtimestamp(moment.timestamp() + 3600 * hours, moment.tzinfo)


def _bucket(kind: str, start: datetime, end: datetime, limit: int | None, form: str) -> Bucket:
    ends_at = start.timestamp() + 3600 if kind == "hour" else end.timestamp()
    return Bucket(kind, start.strftime(form), start.timestamp(), ends_at, limit)


def next_hour(limits: Limits, now: float) -> float:
    local = datetime.fromtimestamp(now, limits.timezone)
    return _add(local.replace(minute=0, second=0, microsecond=0), hours=1).timestamp()


def next_day(limits: Limits, now: float) -> float:
    """The next day on which mail may leave, at the window's opening."""
    local = datetime.fromtimestamp(now, limits.timezone)
    return _opening(limits, local.date() + timedelta(days=1))


def window_opens(limits: Limits, now: float) -> float | None:
    """When mail may leave again; None: it may now."""
    local = datetime.fromtimestamp(now, limits.timezone)
    minute = local.hour * 60 + local.minute
    day = local.date()
    if limits.window is not None and limits.window.start_minute > limits.window.end_minute > minute:
        day -= timedelta(days=1)  # past midnight, in a window that opened yesterday
    if day.weekday() in limits.days and (limits.window is None or limits.window.is_open(minute)):
        return None
    today = local.date()
    opening = _opening(limits, today)
    return opening if opening > now else _opening(limits, today + timedelta(days=1))


def _opening(limits: Limits, day: date) -> float:
    """The opening on that day, or on the first allowed day after it."""
    while day.weekday() not in limits.days:
        day += timedelta(days=1)
    start = MORNING
    if limits.window is not None:
        start = time(limits.window.start_minute // 60, limits.window.start_minute % 60)
    return datetime.combine(day, start, limits.timezone).timestamp()


def why_not_now(limits: Limits, now: float) -> Defer | None:
    """Before anything is claimed: may mail leave at this time of day and week?"""
    opens = window_opens(limits, now)
    return None if opens is None else Defer(DeferReason.OUTSIDE_HOURS, opens)


def why_it_ended(limits: Limits, report: RunReport, now: float, earlier_pauses: int = 0) -> Defer | None:
    """What a sender's run means for its mailout; None: nothing keeps it from going on."""
    if report.ended is Ended.REFUSED and report.outcome is not None:
        code, message = report.outcome.code, report.outcome.message
        return Defer(DeferReason.CONFIGURATION_ERROR, None, f"{code}: {message}")
    if report.ended is Ended.CIRCUIT:
        pause = CIRCUIT_PAUSES[min(earlier_pauses, len(CIRCUIT_PAUSES) - 1)]
        last = f"{report.outcome.code}: {report.outcome.message}" if report.outcome else None
        return Defer(DeferReason.TRANSIENT_ERRORS, now + pause, last)
    if report.ended is not Ended.LIMITED:
        return None
    match report.limited:
        case "hour":
            return Defer(DeferReason.RATE_PER_HOUR, next_hour(limits, now))
        case "day":
            return Defer(DeferReason.DAILY_LIMIT, next_day(limits, now))
        case _:
            return Defer(DeferReason.QUOTA_EXHAUSTED, now + QUOTA_PAUSE)
