"""The limits (hour, day, quota, window): a pure decision over (now, usage, settings); the second brake.

The counting itself is the store's, within `step`; here is what the counts mean and how long a mailout waits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from mailout.base.setting_values import DAY_MINUTES, SendWindow
from mailout.outbox.delivery.error_codes import remedy_for
from mailout.outbox.delivery.options import Ended, RunReport
from mailout.outbox.delivery.protocol import REHEARSED, Bucket, Outcome
from mailout.outbox.queue.mailout import DeferReason

QUOTA_PAUSE = 3600.0
QUOTA_WINDOW = 86_400.0
"""Providers count the last 24 hours."""
FOLDER_FULL = "FOLDER_FULL"
"""The disk has no room for another mail: it goes on by itself when there is."""
MORNING = 9 * 60
"""When a day begins for a mailout that waits for it, if no window is set."""
CIRCUIT_PAUSES = (60.0, 300.0, 900.0, 3600.0)
THROTTLED = "The provider throttled every call for a minute; if it happens often, lower SEND_RATE_PER_SEC"


@dataclass(frozen=True, slots=True)
class Limits:
    """What may leave when. Times of day are those of `SEND_TIMEZONE`."""

    timezone: ZoneInfo
    per_hour: int | None = None
    per_day: int | None = None
    window: SendWindow | None = None
    days: frozenset[int] = frozenset(range(7))
    warmup: tuple[int, ...] = ()  # the most on the first, second, … day of sending

    def most_on(self, day: date, first_day: date) -> int | None:
        """The day's ceiling: `per_day`, and while an account is warmed up, what that allows."""
        ceilings = [] if self.per_day is None else [self.per_day]
        place = max(0, (day - first_day).days)  # a later first day was written by a clock that was ahead
        if place < len(self.warmup):
            ceilings.append(self.warmup[place])
        return min(ceilings, default=None)


@dataclass(frozen=True, slots=True)
class Usage:
    """What was sent: in this hour, on this day (of all and of one company, whichever is more)."""

    hour: int = 0
    day: int = 0
    quota: int | None = None  # what the provider still allows; None: no limit


@dataclass(frozen=True, slots=True)
class Defer:
    """A mailout waits: why, until when (None: for a person), and a sentence about it."""

    reason: DeferReason
    until: float | None
    note: str | None = None


# ── Counters ─────────────────────────────────────────────────────────────────────────────────────


def buckets(
    limits: Limits, now: float, first_day: str | None = None, *, rehearsal: bool = False
) -> Sequence[Bucket]:
    """This hour and the next, this day and the next: the store takes the ones its clock is in.

    A rehearsal has counters of its own, told by their keys: it uses up nothing that real mail may use.
    """
    today = local(limits, now).date()
    began = began_on(first_day, today)
    made = [
        *(_hour(limits, start) for start in (hour_start(limits, now), next_hour(limits, now))),
        *(_day(limits, day, began) for day in (today, today + timedelta(days=1))),
    ]
    return [replace(one, key=one.key + REHEARSED) for one in made] if rehearsal else made


def _hour(limits: Limits, start: float) -> Bucket:
    key = local(limits, start).strftime("%Y-%m-%dT%H%z")  # in autumn an hour comes twice
    return Bucket("hour", key, start, start + 3600, limits.per_hour)


def _day(limits: Limits, day: date, began: date) -> Bucket:
    starts, ends = (instant(limits.timezone, day, minute) for minute in (0, DAY_MINUTES))
    return Bucket("day", day.isoformat(), starts, ends, limits.most_on(day, began))


def began_on(first_day: str | None, today: date) -> date:
    """The first day of sending; today, if nothing was sent yet."""
    return today if first_day is None else date.fromisoformat(first_day.removesuffix(REHEARSED))


def local(limits: Limits, moment: float) -> datetime:
    return datetime.fromtimestamp(moment, limits.timezone)


def hour_start(limits: Limits, now: float) -> float:
    return local(limits, now).replace(minute=0, second=0, microsecond=0).timestamp()


def next_hour(limits: Limits, now: float) -> float:
    """By the clock of the world: across summer time, an hour stays an hour."""
    return hour_start(limits, now) + 3600


def midnight(limits: Limits, now: float) -> float:
    """When the day ends."""
    return instant(limits.timezone, local(limits, now).date(), DAY_MINUTES)


# ── Hours and days ───────────────────────────────────────────────────────────────────────────────


def next_day(limits: Limits, now: float) -> float:
    """The next day on which mail may leave: at the window's opening, or at 09:00.

    A window that is open over midnight goes on then: the new day's counter is empty.
    """
    tomorrow = midnight(limits, now)
    if limits.window is not None and window_opens(limits, tomorrow) is None:
        return tomorrow
    return _first_opening(limits, local(limits, now).date() + timedelta(days=1))


def window_opens(limits: Limits, now: float) -> float | None:
    """When mail may leave again; None: it may now."""
    today = local(limits, now).date()
    # Past midnight, a window that opened yesterday may still be open.
    if any(_is_open(limits, day, now) for day in (today - timedelta(days=1), today)):
        return None
    first = _first_opening(limits, today)
    return first if first > now else _first_opening(limits, today + timedelta(days=1))


def window_closes(limits: Limits, now: float) -> float:
    """The end of the hours that `now` is in; infinity: they have none."""
    window = limits.window
    if len(limits.days) == 7 and (window is None or window == SendWindow(0, DAY_MINUTES)):
        return math.inf
    minute = DAY_MINUTES if window is None else window.end_minute
    today = local(limits, now).date()
    ends = (instant(limits.timezone, day, minute) for day in (today, today + timedelta(days=1)))
    closing = next(end for end in ends if end > now)
    return closing if window_opens(limits, closing) is not None else window_closes(limits, closing)


def _is_open(limits: Limits, day: date, now: float) -> bool:
    """Whether the hours that begin on this day include `now`. They may end on the next."""
    if day.weekday() not in limits.days:
        return False
    window = limits.window or SendWindow(0, DAY_MINUTES)
    ends_on = day if window.start_minute < window.end_minute else day + timedelta(days=1)
    opens = instant(limits.timezone, day, window.start_minute)
    return opens <= now < instant(limits.timezone, ends_on, window.end_minute)


def _first_opening(limits: Limits, day: date) -> float:
    """The opening on that day, or on the first allowed day after it."""
    while day.weekday() not in limits.days:
        day += timedelta(days=1)
    return instant(limits.timezone, day, limits.window.start_minute if limits.window else MORNING)


def instant(zone: ZoneInfo, day: date, minute: int) -> float:
    """A minute of a day. One that comes twice is the first; one that is left out is when the clock jumps."""
    day += timedelta(days=minute // DAY_MINUTES)
    at = datetime.combine(day, time(minute % DAY_MINUTES // 60, minute % 60), zone)
    moment = at.timestamp()
    if datetime.fromtimestamp(moment, zone).replace(tzinfo=None) == at.replace(tzinfo=None):
        return moment
    # Left out: by the time before the jump it lies after it, by the time after the jump before it.
    jump = int(at.replace(fold=1).timestamp())
    while datetime.fromtimestamp(jump, zone).replace(tzinfo=None) < at.replace(tzinfo=None):
        jump += 60
    return float(jump)


# ── Decisions ────────────────────────────────────────────────────────────────────────────────────


def why_not_now(
    limits: Limits, now: float, usage: Usage | None = None, first_day: str | None = None
) -> Defer | None:
    """May mail leave at this hour, after so much was sent? Without usage: at this time of day and week?"""
    opens = window_opens(limits, now)
    if opens is not None:
        return Defer(DeferReason.OUTSIDE_HOURS, opens)
    if usage is None:
        return None
    today = local(limits, now).date()
    most = limits.most_on(today, began_on(first_day, today))
    if limits.per_hour is not None and usage.hour >= limits.per_hour:
        return Defer(DeferReason.RATE_PER_HOUR, next_hour(limits, now))
    if most is not None and usage.day >= most:
        return Defer(DeferReason.DAILY_LIMIT, next_day(limits, now))
    if usage.quota is not None and usage.quota <= 0:
        return Defer(DeferReason.QUOTA_EXHAUSTED, now + QUOTA_PAUSE)
    return None


def why_it_ended(
    limits: Limits,
    report: RunReport,
    now: float,
    *,
    pauses_in_a_row: int = 0,
    quota_frees_at: float | None = None,
) -> Defer | None:
    """What a sender's run means for its mailout; None: nothing keeps it from going on."""
    refused = report.outcome if report.ended is Ended.REFUSED else None
    if refused is not None and refused.code != FOLDER_FULL:
        return Defer(DeferReason.CONFIGURATION_ERROR, None, described(refused))
    if report.ended in (Ended.CIRCUIT, Ended.THROTTLED) or refused is not None:
        last = described(report.outcome) if report.outcome else None
        if report.ended is Ended.THROTTLED:
            last = f"{THROTTLED} ({last.rstrip('. ')})." if last else f"{THROTTLED}."
        return after_errors(now, pauses_in_a_row, last)
    if report.ended is Ended.DEADLINE:
        return why_not_now(limits, now)
    if report.ended is not Ended.LIMITED:
        return None
    match report.limited:
        case "hour":
            return Defer(DeferReason.RATE_PER_HOUR, next_hour(limits, now))
        case "day":
            return Defer(DeferReason.DAILY_LIMIT, next_day(limits, now))
        case _:
            # Others may send from the same account: what was sent here does not tell when it has room again.
            return Defer(DeferReason.QUOTA_EXHAUSTED, min(quota_frees_at or math.inf, now + QUOTA_PAUSE))


def after_errors(now: float, pauses_in_a_row: int, note: str | None) -> Defer:
    """What passes by itself is waited for, longer each time."""
    pause = CIRCUIT_PAUSES[min(pauses_in_a_row, len(CIRCUIT_PAUSES) - 1)]
    return Defer(DeferReason.TRANSIENT_ERRORS, now + pause, note)


def described(outcome: Outcome) -> str:
    """The code, what the provider said, and what a person can do."""
    said = f"{outcome.code}: {outcome.message}" if outcome.message else f"{outcome.code}"
    remedy = remedy_for(outcome.code or "")
    return f"{said.rstrip('. ')}. {remedy}" if remedy else said


def quota_frees(begun: Sequence[tuple[float, int]], pending: int, now: float) -> float | None:
    """When enough of what was sent here in the last 24 hours is older than that; None: nothing is known.

    Enough is all that is pending, or a tenth of what the window holds: a mailout need not wake for every
    message, nor wait for all of them.
    """
    enough = min(pending, math.ceil(sum(n for _, n in begun) / 10))
    freed = 0
    for minute, n in begun:
        freed += n
        if freed >= enough > 0:
            return max(now + 60, minute + 60 + QUOTA_WINDOW)
    return None
