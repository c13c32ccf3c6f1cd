"""Putting the books right: what was lost is found, what is counted is checked, what came back is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mailout.delivery.protocol import Timing
from mailout.errors import MailoutError
from mailout.feedback.model import Doubts, Drift
from mailout.ports import ErrorRecord, Store
from mailout.queue.model import Mailout

EVENTS_COME_FOR = 14 * 86_400.0
"""Opens and late bounces trickle in; after so long a mailout's rates no longer move."""


class Rates(NamedTuple):
    """What the page in Notion shows."""

    delivered_count: int
    bounce_rate: float  # of what was sent, as SES reckons it
    unsub_rate: float


@dataclass(frozen=True, slots=True)
class Reconciled:
    reaped: int  # attempts of senders that disappeared; they are unknown now
    doubts: Doubts
    drift: tuple[Drift, ...]
    quota_problem: str | None = None


def reconcile(store: Store, timing: Timing, refresh_quota: Callable[[], object] | None = None) -> Reconciled:
    """`refresh_quota` asks the provider, where there is one; its silence stops nothing else."""
    reaped = store.reap(timing.reap_grace)
    problem = None
    if refresh_quota is not None:
        try:
            refresh_quota()
        except MailoutError as error:
            problem = str(error)
    drift = tuple(store.usage_drift())
    store.record_errors([ErrorRecord("usage_drift", _in_words(d), stage="delivery") for d in drift])
    return Reconciled(reaped, store.doubts_open(), drift, problem)


def rates(mailout: Mailout) -> Rates:
    """Of a mailout's counts. Nothing sent: nothing to divide by."""
    sent, counts = mailout.ledger.sent, mailout.metrics
    delivered = counts.get("delivered", 0)
    if not sent:
        return Rates(delivered, 0.0, 0.0)
    return Rates(delivered, counts.get("bounced", 0) / sent, counts.get("unsubscribed", 0) / sent)


def moving(store: Store, now: float, limit: int = 1000) -> Iterator[tuple[Mailout, Rates]]:
    """Mailouts whose rates may still change: real ones, begun not too long ago."""
    for mailout in store.mailouts(limit=limit):
        began = mailout.started_at
        if began is not None and now - began < EVENTS_COME_FOR and not mailout.is_test:
            yield mailout, rates(mailout)


def _in_words(drift: Drift) -> str:
    return (
        f"The {drift.kind} {drift.key} counts {drift.counted} messages of {drift.scope};"
        f" {drift.charged} were begun in it."
    )
