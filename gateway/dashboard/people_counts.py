"""How many people there are: now, and over the last 90 days."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from gateway.dashboard.desk import Desk
from mailout.base.time_format import short_day
from mailout.insight.history import history_rows
from mailout.insight.history.port import LISTED, days_ago
from mailout.insight.reporting.plot import Chart, Line, chart
from mailout.letters.audience import subscriber_rows

DAYS = 90
COUNTED_LIVE_PEOPLE = 100_000
"""More take a moment to count."""
STATUSES = ("active", "unsubscribed", "bounced")


def people_now(desk: Desk) -> Mapping[str, int]:
    """Counted now; of very many, as the last reconcile counted them."""
    found = history_rows.people_over_time(desk.store, days_ago(desk.store.now(), desk.zone, 1))
    counts = {status: found[-1][1].get(status, 0) for status in STATUSES} if found else {}
    if sum(counts.values()) < COUNTED_LIVE_PEOPLE:
        now = subscriber_rows.subscriber_counts(desk.store)
        counts = {status: now.get(status, 0) for status in STATUSES}
    return counts


def lists_now(desk: Desk) -> Mapping[str, int]:
    found = history_rows.people_over_time(desk.store, days_ago(desk.store.now(), desk.zone, 1))
    counts = found[-1][1] if found else {}
    return {name.removeprefix(LISTED): n for name, n in sorted(counts.items()) if name.startswith(LISTED)}


def people_chart(desk: Desk, statuses: tuple[str, ...] = ("active",)) -> Chart | None:
    """None: fewer than two days are known. The last point is today's, as it is now."""
    now = desk.store.now()
    known = history_rows.people_over_time(desk.store, days_ago(now, desk.zone, DAYS))
    today = days_ago(now, desk.zone, 0)
    days = [*((day, counts) for day, counts in known if day != today), (today, people_now(desk))]
    if len(days) < 2:
        return None
    lines = [
        Line(status, [(_noon(day), counts.get(status, 0)) for day, counts in days]) for status in statuses
    ]
    return chart("people", "People over the last 90 days", lines, label=_label)


def _noon(day: str) -> float:
    return date.fromisoformat(day).toordinal() * 86_400.0


def _label(at: float) -> str:
    return short_day(date.fromordinal(round(at / 86_400)))
