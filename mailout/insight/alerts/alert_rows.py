"""What the store shows to alerts besides its mailouts."""

from __future__ import annotations

from typing import TypedDict

from mailout.base.select import Reads, View, every, first
from mailout.insight.alerts.port import Signs
from mailout.outbox.delivery.outbox_rows import QUOTAS
from mailout.outbox.feedback.feedback_rows import inbox


class _Unheard(TypedDict):
    since: float | None


class _Held(TypedDict):
    key: str


UNHEARD = View("read_unheard", _Unheard, ("since",))
ALERTS = View("read_alerts", _Held, ("key",))


def alert_signs(store: Reads, scope: str) -> Signs:
    """What there is to see besides the mailouts that need a person."""
    now = store.now()
    quota = first(store, QUOTAS, {"scope": scope})
    waiting, unheard = inbox(store), first(store, UNHEARD, {})
    return Signs(
        now=now,
        quota_most=quota["most"] if quota else None,
        events_waiting=waiting["waiting"],
        events_waiting_since=waiting["oldest"],
        unheard_since=unheard["since"] if unheard else None,
        holding=frozenset(row["key"] for row in every(store, ALERTS)),
    )
