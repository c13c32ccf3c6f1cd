"""The hours in which mail may leave, as moments: days of 23 and 25 hours included."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from mailout.setting_values import DAY, SendWindow

MORNING = 9 * 60
"""When a day begins for a mailout that waits for it, if no window is set."""


def opening(zone: ZoneInfo, window: SendWindow | None, day: date) -> float:
    """When a mailout that waits for this day goes on."""
    return instant(zone, day, MORNING if window is None else window.start_minute)


def is_open(zone: ZoneInfo, window: SendWindow | None, days: frozenset[int], day: date, now: float) -> bool:
    """Whether the hours that begin on this day include `now`. They may end on the next."""
    if day.weekday() not in days:
        return False
    start, end = (0, DAY) if window is None else (window.start_minute, window.end_minute)
    ends_on = day if start < end else day + timedelta(days=1)
    return instant(zone, day, start) <= now < instant(zone, ends_on, end)


def instant(zone: ZoneInfo, day: date, minute: int) -> float:
    """A minute of a day. One that comes twice is the first; one that is left out is when the clock jumps."""
    day += timedelta(days=minute // DAY)
    at = datetime.combine(day, time(minute % DAY // 60, minute % 60), zone)
    moment = at.timestamp()
    if datetime.fromtimestamp(moment, zone).replace(tzinfo=None) == at.replace(tzinfo=None):
        return moment
    # Left out: by the time before the jump it lies after it, by the time after the jump before it.
    jump = int(at.replace(fold=1).timestamp())
    while datetime.fromtimestamp(jump, zone).replace(tzinfo=None) < at.replace(tzinfo=None):
        jump += 60
    return float(jump)
