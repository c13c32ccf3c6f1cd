"""Reconciling the counters: lost messages are found, the quota is asked for, counters are checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mailout.error_log import ErrorRecord
from mailout.errors import MailoutError
from mailout.feedback.model import Doubts, Drift
from mailout.feedback.port import FeedbackStore


@dataclass(frozen=True, slots=True)
class Reconciled:
    reaped: int  # attempts of senders that disappeared; they are unknown now
    doubts: Doubts
    drift: tuple[Drift, ...]
    quota_problem: str | None = None


def reconcile(
    store: FeedbackStore, reap: Callable[[], int], refresh_quota: Callable[[], object] | None = None
) -> Reconciled:
    """`reap` gives up the senders that disappeared; it may know a journal of theirs.
    `refresh_quota` asks the provider, where there is one; its silence stops nothing else."""
    reaped = reap()
    problem = None
    if refresh_quota is not None:
        try:
            refresh_quota()
        except MailoutError as error:
            problem = str(error)
    drift = tuple(store.usage_drift())
    store.record_errors([ErrorRecord("usage_drift", _in_words(d), stage="delivery") for d in drift])
    return Reconciled(reaped, store.doubts_open(), drift, problem)


def _in_words(drift: Drift) -> str:
    return (
        f"The {drift.kind} {drift.key} counts {drift.counted} messages of {drift.scope};"
        f" {drift.charged} were begun in it."
    )
