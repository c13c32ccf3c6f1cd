"""Counting in this process, a few dictionary entries a step, until the counts go to the store."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence

from mailout.insight.metrics.port import BUCKETS, DURATION, ENDS, VALIDATION_OF, Counter, Sample
from mailout.outbox.delivery.protocol import Result, Step, StepReply
from mailout.outbox.delivery.states import State

OTHER = "OTHER"
THROTTLED = "QUOTA_ERROR"
"""Too fast, or too much: it costs the message no attempt, but it is tried again."""
_ENDS_MS = [*(end * 1000 for end in BUCKETS), float("inf")]
_BEGUN = (State.RECEIVED, State.VALIDATED, State.SENT_ATTEMPT)
"""What a message passes through in the commit that begins its attempt."""


class Tally:
    """What has happened since it was last taken. Several threads may count."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._counts: dict[Sample, float] = defaultdict(float)

    def add(self, counter: Counter, label: str, n: int = 1) -> None:
        """`label`: the value of the counter's one label."""
        if n > 0:
            with self._lock:
                self._counts[counter.value, str(label)] += n

    def moved(self, state: State, n: int = 1) -> None:
        """So many messages are in this state now."""
        self.add(Counter.TRANSITIONS, state, n)

    def step(self, step: Step, reply: StepReply) -> None:
        """One round of a sender: what it reported, and what it was given."""
        by_state: dict[State, list[Result]] = defaultdict(list)
        for result in step.results:
            by_state[result.state].append(result)
        with self._lock:
            for state, results in by_state.items():
                self.moved(state, len(results))
                self._called(state, results)
            for state in _BEGUN:
                self.moved(state, len(reply.rows))
            self.moved(State.PENDING, len(step.withdraw))
            self.moved(State.SUPPRESSED, reply.suppressed)
            self.moved(State.RECEIVED, reply.refused)
            self.moved(State.VALIDATION_FAILED, reply.refused)
            self.add(Counter.VALIDATION_FAILURES, "RECIPIENT", reply.refused)

    def _called(self, state: State, results: Sequence[Result]) -> None:
        if state is State.VALIDATION_FAILED:  # nothing was called
            for result in results:
                self.add(Counter.VALIDATION_FAILURES, VALIDATION_OF.get(result.code or "", OTHER))
            return
        for result in results if state in (State.RETRY_SCHEDULED, State.PENDING) else ():
            if state is State.RETRY_SCHEDULED or result.category == THROTTLED:
                self.add(Counter.RETRIES, result.category or OTHER)
        took = sorted(result.duration_ms for result in results if result.duration_ms is not None)
        if took:
            # Cumulative, as it is shown: every bucket holds what the smaller ones hold.
            for label, end in zip(ENDS, _ENDS_MS, strict=True):
                self._counts[f"{DURATION}_bucket", f"{state} {label}"] += bisect_right(took, end)
            self._counts[f"{DURATION}_sum", str(state)] += sum(took) / 1000
            self._counts[f"{DURATION}_count", str(state)] += len(took)

    def take(self) -> Mapping[Sample, float]:
        """All of it, once: what comes now belongs to the next time."""
        with self._lock:
            taken, self._counts = self._counts, defaultdict(float)
        return taken

    def give_back(self, taken: Mapping[Sample, float]) -> None:
        """They did not arrive."""
        with self._lock:
            for sample, value in taken.items():
                self._counts[sample] += value
