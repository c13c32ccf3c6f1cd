"""Moments and spans in words. A moment is seconds since the epoch; whoever shows it hands in the zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, tzinfo
from functools import lru_cache
from itertools import pairwise


@lru_cache(maxsize=256)  # the messages of one call have the same
def iso(moment: float | None) -> str | None:
    """ISO 8601 in UTC with a Z, to the millisecond, as the stores' views write it."""
    if moment is None:
        return None
    return _at(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _at(moment: float, zone: tzinfo) -> datetime:
    """What no calendar has is shown as the last day that there is in every zone."""
    return datetime.fromtimestamp(min(moment, _LAST_DAY), zone)


def spoken(moment: float, zone: tzinfo) -> str:
    """For people: `15 Nov 2026 09:00 CET`."""
    local = _at(moment, zone)
    return f"{local.day} {_MONTHS[local.month - 1]} {local:%Y %H:%M} {local.tzname()}"


def local_minute(moment: float, zone: tzinfo) -> str:
    """As a form's field for date and time has it: `2026-11-15T09:00`."""
    return f"{_at(moment, zone):%Y-%m-%dT%H:%M}"


def short_day(day: date) -> str:
    """A label on an axis of days: `15 Nov`."""
    return f"{day.day} {_MONTHS[day.month - 1]}"


def day(moment: float, zone: tzinfo) -> str:
    """For a table: `15 Nov 2026`."""
    local = _at(moment, zone)
    return f"{local.day:>2} {_MONTHS[local.month - 1]} {local:%Y}"


def clock_time(moment: float, zone: tzinfo, span: float) -> str:
    """A label on an axis that covers `span` seconds: no finer than it needs to be."""
    local = _at(moment, zone)
    if span < 600:
        return f"{local:%H:%M:%S}"
    if span < 86_400:
        return f"{local:%H:%M}"
    return f"{local.day} {_MONTHS[local.month - 1]} {local:%H:%M}"


def lasting(seconds: float) -> str:
    """The two largest units that say something: `1 h 5 min`, `42 s`, `0.4 s`."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    for (unit, size), (smaller, part) in pairwise(_UNITS):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


# Not strftime's %b: that follows the machine's locale.
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LAST_DAY = datetime(9999, 12, 30, tzinfo=UTC).timestamp()
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
