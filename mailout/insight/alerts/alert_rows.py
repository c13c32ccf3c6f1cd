"""What the store shows to alerts besides its mailouts."""

from __future__ import annotations

from typing import TypedDict

from mailout.base.select import Reads, View, every, first
from mailout.insight.alerts.conditions import EVENTS_UNHEARD_SECONDS
from mailout.insight.alerts.port import SIGN_UP_BRAKE, Signs
from mailout.insight.history import notion_troubles
from mailout.insight.metrics.metric_rows import confirmations
from mailout.outbox.delivery.outbox_rows import QUOTAS
from mailout.outbox.feedback.feedback_rows import inbox


class _Unheard(TypedDict):
    since: float | None


class _SingleMailSent(TypedDict):
    id: str
    sent_at: float
    is_heard: bool


class _Held(TypedDict):
    key: str


class _Note(TypedDict):
    name: str
    at: float


UNHEARD = View("read_unheard", _Unheard, ("since",))
SINGLE_MAILS_SECONDS = 86_400.0
"""What was sent earlier says nothing: events may have been set up since."""
SINGLE_MAILS_SENT = View("read_single_mails_sent", _SingleMailSent, ("id",))
ALERTS = View("read_alerts", _Held, ("key",))
NOTES = View("read_notes", _Note, ("name",))


def alert_signs(store: Reads, scope: str) -> Signs:
    """What there is to see besides the mailouts that need a person."""
    now = store.now()
    quota = first(store, QUOTAS, {"scope": scope})
    waiting = inbox(store)
    brake, asked = first(store, NOTES, {"name": SIGN_UP_BRAKE}), confirmations(store)
    return Signs(
        now=now,
        quota_most=quota["most"] if quota else None,
        events_waiting=waiting["waiting"],
        events_waiting_since=waiting["oldest"],
        unheard_since=_unheard_since(store, now),
        holding=frozenset(row["key"] for row in every(store, ALERTS)),
        sign_up_brake_at=brake["at"] if brake else None,
        confirmations_sent=asked["sent"],
        confirmations_bounced=asked["bounced"],
        notion=notion_troubles.lasting(store),
    )


def _unheard_since(store: Reads, now: float) -> float | None:
    """The first of the mailouts, or the last single mail of a day that SES has had time to report on."""
    mailouts = first(store, UNHEARD, {})
    sent = {"sent_at >": now - SINGLE_MAILS_SECONDS, "sent_at <=": now - EVENTS_UNHEARD_SECONDS}
    single = first(store, SINGLE_MAILS_SENT, sent, order=["-sent_at"])
    found = [mailouts["since"]] if mailouts and mailouts["since"] is not None else []
    if single is not None and not single["is_heard"]:
        found.append(single["sent_at"])
    return min(found, default=None)
