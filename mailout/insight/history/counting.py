"""Counts over time: written down at each reconcile, shown by the dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta, tzinfo
from typing import Protocol

from mailout.insight.history.port import History
from mailout.outbox.delivery.port import Outbox


class CountingStore(History, Outbox, Protocol):
    """The store's time decides which day it is."""


def keep_counts(store: CountingStore, zone: tzinfo) -> None:
    store.keep_counts(day_of(store.now(), zone).isoformat())


def days_ago(now: float, zone: tzinfo, days: int) -> str:
    return (day_of(now, zone) - timedelta(days=days)).isoformat()


def day_of(moment: float, zone: tzinfo) -> date:
    return datetime.fromtimestamp(moment, zone).date()


def spread(moments: Sequence[float], sent: int) -> Sequence[tuple[float, int]]:
    """What samples of the messages say of all: the nth of k was sent when about n/k of all were."""
    ordered = sorted(moments)
    return [(at, round(sent * n / len(ordered))) for n, at in enumerate(ordered, start=1)]
