"""A forecast in words and in JSON."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from mailout.queue.forecast import Forecast
from mailout.queue.mailout import WAITS_FOR_A_PERSON
from mailout.reporting.phrases import WHY, count
from mailout.time_format import iso, spoken


def forecast_text(forecast: Forecast, zone: tzinfo) -> str:
    """`done by 16 Nov 2026 14:00 UTC; 50 messages leave on a later day`."""
    if forecast.ends_at is None and forecast.limited_by in WAITS_FOR_A_PERSON:
        return "nobody can say: it waits for a person"
    if forecast.ends_at is None:
        why = f": {WHY[forecast.limited_by]}" if forecast.limited_by else ""
        return f"nobody can say{why}"
    words = f"done by {spoken(forecast.ends_at, zone)}"
    return f"{words}; {count(forecast.later, 'message')} on a later day" if forecast.later else words


def forecast_dict(forecast: Forecast | None) -> dict[str, Any] | None:
    if forecast is None:
        return None
    return {
        "begins_at": iso(forecast.begins_at),
        "ends_at": iso(forecast.ends_at),
        "today": forecast.today,
        "later": forecast.later,
        "limited_by": forecast.limited_by.value if forecast.limited_by else None,
    }
