"""What the store shows to alerts besides its mailouts."""

from __future__ import annotations

from typing import TypedDict

from mailout.base.select import Reads, View, every, first
from mailout.insight.alerts.port import SIGN_UP_BRAKE, Signs
from mailout.insight.metrics.metric_rows import confirmations
from mailout.outbox.delivery.outbox_rows import QUOTAS
from mailout.outbox.feedback.feedback_rows import inbox


class _Unheard(TypedDict):
    since: float | None


class _Held(TypedDict):
    key: str


class _Note(TypedDict):
    name: str
    at: float


UNHEARD = View("read_unheard", _Unheard, ("since",))
ALERTS = View("read_alerts", _Held, ("key",))
NOTES = View("read_notes", _Note, ("name",))


def alert_signs(store: Reads, scope: str) -> Signs:
    """What there is to see besides the mailouts that need a person."""
    now = store.now()
    quota = first(store, QUOTAS, {"scope": scope})
    waiting, unheard = inbox(store), first(store, UNHEARD, {})
    brake, asked = first(store, NOTES, {"name": SIGN_UP_BRAKE}), confirmations(store)
    return Signs(
        now=now,
        quota_most=quota["most"] if quota else None,
        events_waiting=waiting["waiting"],
        events_waiting_since=waiting["oldest"],
        unheard_since=unheard["since"] if unheard else None,
        holding=frozenset(row["key"] for row in every(store, ALERTS)),
        sign_up_brake_at=brake["at"] if brake else None,
        confirmations_sent=asked["sent"],
        confirmations_bounced=asked["bounced"],
    )
