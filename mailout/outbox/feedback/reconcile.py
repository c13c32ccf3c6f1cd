"""Reconciling the counters: lost messages are found, the quota is asked for, counters are checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mailout.base.error_log import ERROR_TABLE, ErrorRecord
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.feedback.port import Doubts, Drift, FeedbackStore


@dataclass(frozen=True, slots=True)
class Reconciled:
    reaped: int  # attempts of senders that disappeared; they are unknown now
    doubts: Doubts
    drift: tuple[Drift, ...]


def reconcile(
    store: FeedbackStore, reap: Callable[[], int], refresh_quota: Callable[[], object]
) -> Reconciled:
    """`reap` gives up the senders that disappeared; it may know a journal of theirs. `refresh_quota` asks the
    provider; without an answer the last one holds."""
    reaped = reap()
    refresh_quota()
    drift = tuple(feedback_rows.usage_drift(store))
    store.put(ERROR_TABLE, [ErrorRecord("usage_drift", _in_words(d), stage="delivery") for d in drift])
    return Reconciled(reaped, feedback_rows.doubts_open(store), drift)


def _in_words(drift: Drift) -> str:
    return (
        f"The {drift.kind} {drift.key} counts {drift.counted} messages of {drift.scope};"
        f" {drift.charged} were begun in it."
    )
