"""What Prometheus gets, read from the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from mailout.base.select import Reads, View, every, first
from mailout.insight.metrics.port import Sample, Vitals
from mailout.outbox.delivery.outbox_rows import PACE, living_senders
from mailout.outbox.delivery.pacing import PaceState
from mailout.outbox.delivery.states import Column
from mailout.outbox.feedback.feedback_rows import inbox


class _Counted(TypedDict):
    name: str
    labels: str
    value: float


class _OpenMailouts(TypedDict):
    """Unfinished mailouts of one status, and their ledgers added up."""

    status: str
    mailouts: int
    pending: int
    in_flight: int
    sent: int
    failed: int
    suppressed: int
    unknown: int


class Confirmations(TypedDict):
    """The mails that ask whether a sign-up is meant, of the last seven days in which one was sent."""

    sent: int
    bounced: int


COUNTERS = View("read_counters", _Counted, ("name", "labels"))
OPEN_MAILOUTS = View("read_open_mailouts", _OpenMailouts, ("status",))
CONFIRMATIONS = View("read_confirmations", Confirmations, ("sent",))


def counts(store: Reads) -> Mapping[Sample, float]:
    return {(row["name"], row["labels"]): float(row["value"]) for row in every(store, COUNTERS)}


def confirmations(store: Reads) -> Confirmations:
    return first(store, CONFIRMATIONS, {}) or {"sent": 0, "bounced": 0}


def vitals(store: Reads, scope: str) -> Vitals:
    """How everything stands; `scope`: whose pace."""
    unfinished: list[Any] = [*store.select(OPEN_MAILOUTS)]
    pace = first(store, PACE, {"scope": scope})
    return Vitals(
        queue={row["status"]: row["mailouts"] for row in unfinished},
        messages={column.value: sum(row[column.value] for row in unfinished) for column in Column},
        oldest_event_at=inbox(store)["oldest"],
        sessions=living_senders(store),
        pace=PaceState(pace["next_at"], pace["factor"], pace["factor_at"]) if pace else PaceState(),
    )
