"""A store that counts what passes through it: every step that a message takes is taken there."""

from __future__ import annotations

import logging
import math
import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar, cast

from mailout.base.clock import Clock
from mailout.base.errors import StoreError
from mailout.insight.metrics.port import (
    BUCKETS,
    DURATION,
    ENDS,
    OTHER,
    VALIDATION_OF,
    Counter,
    MetricsStore,
    Sample,
)
from mailout.outbox.delivery.error_codes import QUOTA_ERROR
from mailout.outbox.delivery.protocol import Step, StepReply
from mailout.outbox.delivery.states import State
from mailout.outbox.queue.mailout import DeferReason, Mailout

log = logging.getLogger("mailout.metrics")

FLUSH_SECONDS = 5.0
"""How much of its counts a process that is killed takes with it. The ledger loses nothing."""


Moves = Callable[..., Mapping[State, int]]
"""Of an act's answer and arguments: how many messages came into which state."""
MOVES: Mapping[str, Moves] = {
    "reap": lambda lost, *_, **__: {State.UNKNOWN: lost},
    "settle": lambda n, mailout_id, to, **__: {to: n},
    "retry_failed": lambda n, *_, **__: {State.PENDING: n},
    "cancel_single_mails": lambda n, *_, **__: {State.SUPPRESSED: n},
    "apply_events": lambda told, *_, **__: {State.SENT: told.confirmed, State.FAILED: told.revoked},
    "freeze_subscribers": lambda added, *_, **__: {State.PENDING: added or 0},
    "freeze_recipients": lambda added, *_, **__: {State.PENDING: added},
}
"""Acts that are made now and then: their counts go to the store at once."""
StoreT = TypeVar("StoreT", bound=MetricsStore)


def counted(store: StoreT, clock: Clock) -> StoreT:
    """The same store, counting."""
    return cast(StoreT, CountedStore(store, clock))


class CountedStore:
    """Everything else goes to the store as it is. Several threads may count."""

    def __init__(self, store: MetricsStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: dict[Sample, float] = {}
        self._next = clock.monotonic() + FLUSH_SECONDS

    def __getattr__(self, name: str) -> Any:
        act = getattr(self._store, name)
        return partial(self._act, act, MOVES[name]) if name in MOVES else act

    def _act(self, act: Callable[..., Any], moves: Moves, *args: Any, **options: Any) -> Any:
        answer = act(*args, **options)
        self._moved(moves(answer, *args, **options))
        return answer

    def step(self, step: Step) -> StepReply:
        """Often, so its counts wait a few seconds."""
        reply = self._store.step(step)
        self._add(counts_of(step, reply))
        if step.close or self._clock.monotonic() >= self._next:
            self.flush()
        return reply

    def cancel(self, id: str) -> Mailout:
        before = self._store.mailout(id).ledger.suppressed
        cancelled = self._store.cancel(id)
        self._moved({State.SUPPRESSED: cancelled.ledger.suppressed - before})
        return cancelled

    def defer(self, id: str, reason: DeferReason, until: float | None, note: str | None = None) -> Mailout:
        deferred = self._store.defer(id, reason, until, note)
        if deferred.defer_reason is reason:  # else it is over, or another hold stands
            self._add({(Counter.DEFERS, reason): 1})
            self.flush()
        return deferred

    def close(self) -> None:
        self.flush()
        self._store.close()

    def _moved(self, counts: Mapping[State, int]) -> None:
        if any(counts.values()):
            self._add({(Counter.TRANSITIONS, state): n for state, n in counts.items()})
            self.flush()

    def _add(self, counts: Mapping[Sample, float]) -> None:
        with self._lock:
            for sample, n in counts.items():
                if n > 0:
                    self._counts[sample] = self._counts.get(sample, 0) + n

    def flush(self) -> None:
        """Never at the cost of what is counted: a store that is away gets the counts later."""
        with self._lock:
            taken, self._counts = self._counts, {}
            self._next = self._clock.monotonic() + FLUSH_SECONDS
        if taken:
            try:
                self._store.add_counts(taken)
            except StoreError as error:
                self._add(taken)
                log.debug("the counts wait for the store: %s", error)


def counts_of(step: Step, reply: StepReply) -> Mapping[Sample, float]:
    """One round of a sender: what it was given, and what it reported."""
    counts: dict[Sample, float] = defaultdict(float)
    begun, refused = len(reply.rows), reply.refused
    counts[Counter.VALIDATION_FAILURES, "RECIPIENT"] += refused
    for state, n in (
        (State.RECEIVED, begun + refused),
        (State.VALIDATED, begun),  # passed through in the commit that begins the attempt, as the one before
        (State.SENT_ATTEMPT, begun),
        (State.VALIDATION_FAILED, refused),
        (State.SUPPRESSED, reply.suppressed),
        (State.PENDING, len(step.withdraw)),
    ):
        counts[Counter.TRANSITIONS, state] += n
    durations: dict[State, list[float]] = defaultdict(list)
    for result in step.results:
        state, category = result.state, result.category
        counts[Counter.TRANSITIONS, state] += 1
        if state is State.VALIDATION_FAILED:  # nothing was called
            counts[Counter.VALIDATION_FAILURES, VALIDATION_OF.get(result.code or "", OTHER)] += 1
            continue
        # Too fast, or too much: it costs the message no attempt, but it is tried again.
        throttled = state is State.PENDING and category == QUOTA_ERROR
        if state is State.RETRY_SCHEDULED or throttled:
            counts[Counter.RETRIES, category or OTHER] += 1
        if result.duration_ms is not None:
            durations[state].append(result.duration_ms / 1000)
    for state, seconds in durations.items():
        seconds.sort()
        # Cumulative, as it is shown: every bucket holds what the smaller ones hold.
        for end, limit in zip(ENDS, (*BUCKETS, math.inf), strict=True):
            counts[f"{DURATION}_bucket", f"{state} {end}"] += bisect_right(seconds, limit)
        counts[f"{DURATION}_sum", state] += sum(seconds)
        counts[f"{DURATION}_count", state] += len(seconds)
    return counts
