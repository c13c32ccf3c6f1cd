"""Counting in this process, a few dictionary entries a message, until the counts go to the store."""

from __future__ import annotations

import collections
import threading
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from mailout.insight.metrics.port import BUCKETS, DURATION, ENDS, VALIDATION_OF, Counter, Sample
from mailout.outbox.delivery.protocol import Result, Step, StepReply
from mailout.outbox.delivery.states import State

OTHER = "OTHER"
THROTTLED = "QUOTA_ERROR"
"""Too fast, or too much: it costs the message no attempt, but it is tried again."""
_SENT = State.SENT
_ENDS = [end * 1000 for end in BUCKETS]
_BEGUN = (State.RECEIVED, State.VALIDATED, State.SENT_ATTEMPT)
"""What a message passes through in the commit that begins its attempt."""


class Tally:
    """What has happened since it was last taken. Several threads may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: collections.Counter[tuple[Counter, str]] = collections.Counter()
        self._calls: dict[State, list[int]] = {}  # by duration; the last place: longer than all
        self._seconds: dict[State, float] = collections.defaultdict(float)
        self._returned: dict[Sample, float] = {}

    def add(self, counter: Counter, label: str, n: int = 1) -> None:
        """`label`: the value of the counter's one label."""
        if n > 0:
            with self._lock:
                self._counts[counter, label] += n

    def moved(self, state: State, n: int = 1) -> None:
        """So many messages are in this state now."""
        self.add(Counter.TRANSITIONS, state, n)

    def step(self, step: Step, reply: StepReply) -> None:
        """One round of a sender: what it reported, and what it was given."""
        with self._lock:
            sent = [result for result in step.results if result.state is _SENT]
            self._called(_SENT, sent)  # together: nearly all of them, and an enum is slow to count by
            self._counts[Counter.TRANSITIONS, _SENT] += len(sent)
            for result in step.results:
                if result.state is not _SENT:
                    self._other(result)
            counts, transitions = self._counts, Counter.TRANSITIONS
            counts[transitions, State.PENDING] += len(step.withdraw)
            for state in _BEGUN:
                counts[transitions, state] += len(reply.rows)
            counts[transitions, State.SUPPRESSED] += reply.suppressed
            counts[transitions, State.RECEIVED] += reply.refused
            counts[transitions, State.VALIDATION_FAILED] += reply.refused
            counts[Counter.VALIDATION_FAILURES, "RECIPIENT"] += reply.refused

    def _other(self, result: Result) -> None:
        state = result.state
        self._counts[Counter.TRANSITIONS, state] += 1
        if state is State.RETRY_SCHEDULED or (state is State.PENDING and result.category == THROTTLED):
            self._counts[Counter.RETRIES, result.category or OTHER] += 1
        elif state is State.VALIDATION_FAILED:
            type = VALIDATION_OF.get(result.code or "", OTHER)
            self._counts[Counter.VALIDATION_FAILURES, type] += 1
            return  # nothing was called
        self._called(state, [result])

    def _called(self, state: State, results: Sequence[Result]) -> None:
        took = [result.duration_ms for result in results if result.duration_ms is not None]
        if took:
            places = self._calls.setdefault(state, [0] * (len(BUCKETS) + 1))
            for milliseconds in took:
                places[bisect_left(_ENDS, milliseconds)] += 1
            self._seconds[state] += sum(took) / 1000

    def take(self) -> Mapping[Sample, float]:
        """All of it, once: what comes now belongs to the next time."""
        with self._lock:
            taken: dict[Sample, float] = collections.defaultdict(float, self._returned)
            for (counter, label), n in self._counts.items():
                if n:
                    taken[counter.value, str(label)] += n
            for sample, value in self._histogram():
                taken[sample] += value
            self._counts.clear()
            self._calls.clear()
            self._seconds.clear()
            self._returned = {}
        return dict(taken)

    def give_back(self, taken: Mapping[Sample, float]) -> None:
        """They did not arrive."""
        with self._lock:
            for sample, value in taken.items():
                self._returned[sample] = self._returned.get(sample, 0.0) + value

    def _histogram(self) -> Iterator[tuple[Sample, float]]:
        """Cumulative, as it is shown: every bucket holds what the smaller ones hold."""
        for state, places in self._calls.items():
            below = 0
            for end, n in zip(ENDS, places, strict=True):
                below += n
                yield (f"{DURATION}_bucket", f"{state} {end}"), below
            yield (f"{DURATION}_sum", str(state)), self._seconds[state]
            yield (f"{DURATION}_count", str(state)), below
