"""One scrape: the counts from the store, and how it stands now. A few short reads, whatever has been sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mailout.delivery import error_codes
from mailout.delivery.states import Column, State
from mailout.metrics.model import DURATION, ENDS, LABEL_OF, VALIDATION_OF, Counter, Sample, labels
from mailout.metrics.port import MetricsStore
from mailout.metrics.text import Family, exposition
from mailout.queue.mailout import DeferReason, Status

FINAL_STATES = (State.SENT, State.FAILED, State.VALIDATION_FAILED, State.SUPPRESSED)
MINUTE = 60.0

_HELP: Mapping[Counter, str] = {
    Counter.TRANSITIONS: "Messages that came into a state.",
    Counter.VALIDATION_FAILURES: "Messages that were wrong and not sent, by the check that said so.",
    Counter.RETRIES: "Attempts that will be made again, by the kind of error.",
    Counter.DEFERS: "Mailouts that were made to wait, by the reason.",
}
_KNOWN: Mapping[Counter, Sequence[str]] = {
    Counter.TRANSITIONS: list(State),
    Counter.VALIDATION_FAILURES: sorted(set(VALIDATION_OF.values())),
    Counter.RETRIES: [error_codes.TRANSIENT_ERROR, error_codes.TIMEOUT_ERROR, error_codes.QUOTA_ERROR],
    Counter.DEFERS: list(DeferReason),
}
"""Shown as 0 before the first: a counter that appears with its first count hides it from `increase`."""


def scrape(store: MetricsStore, *, scope: str, rate: float) -> str:
    """`scope`: whose pace and quota; `rate`: what the settings allow, 0 for no limit."""
    return exposition([*_counted(store.counts()), *_gauges(store, scope, rate)])


def _counted(counts: Mapping[Sample, float]) -> Iterator[Family]:
    for counter in Counter:
        label = LABEL_OF[counter]
        known = {(counter.value, labels(**{label: value})): 0.0 for value in _KNOWN[counter]}
        found = {sample: n for sample, n in counts.items() if sample[0] == counter}
        yield Family(counter, "counter", _HELP[counter], known | found)
    final = "pipeline_final_state_total"
    ends = {
        (final, state): counts.get((Counter.TRANSITIONS.value, state), 0.0)
        for state in (labels(state=state) for state in FINAL_STATES)
    }
    yield Family(final, "counter", "Messages that came to an end, by the state that it was.", ends)
    durations = {sample: counts[sample] for sample in _histogram() if sample in counts}
    yield Family(DURATION, "histogram", "How long the provider took, by the state it led to.", durations)


def _histogram() -> Iterator[Sample]:
    """In the order in which they are shown: a state's buckets from the smallest, then its sum and count."""
    for state in State:
        for end in ENDS:
            yield f"{DURATION}_bucket", labels(state=state, le=end)
        yield f"{DURATION}_sum", labels(state=state)
        yield f"{DURATION}_count", labels(state=state)


def _gauges(store: MetricsStore, scope: str, rate: float) -> Iterator[Family]:
    now, vitals, quota = store.now(), store.vitals(scope), store.quota(scope)

    def gauge(name: str, help: str, samples: Mapping[str, float | None]) -> Family:
        """By labels; what nobody can tell is left out."""
        told = {(name, label): float(value) for label, value in samples.items() if value is not None}
        return Family(name, "gauge", help, told)

    yield gauge(
        "mailout_queue_depth",
        "Mailouts that are not done, by status.",
        {labels(status=s): vitals.queue.get(s, 0) for s in (Status.PENDING, Status.PROCESSING)},
    )
    yield gauge(
        "mailout_messages",
        "Messages of mailouts that are not done, as the ledger has them.",
        {labels(state=column): vitals.messages.get(column, 0) for column in Column},
    )
    lag = None if vitals.oldest_event_at is None else max(0.0, now - vitals.oldest_event_at)
    yield gauge("mailout_event_lag_seconds", "The age of the oldest event not applied yet.", {"": lag or 0.0})
    yield gauge("mailout_sender_sessions", "Senders that are alive.", {"": vitals.sessions})
    begun = store.begun_since(now - MINUTE)
    yield gauge("mailout_send_rate", "Messages a second, over the last minute.", {"": rate_of(begun, now)})
    allowed = rate * vitals.pace.factor_now(now) if rate else None
    yield gauge("mailout_send_rate_allowed", "What settings and pacer allow; none: no limit.", {"": allowed})
    yield gauge("mailout_quota_left", "What the provider still takes; none: no limit.", {"": quota})


def rate_of(begun: Sequence[tuple[float, int]], now: float) -> float:
    """Messages a second over the last sixty, from counts by the minute: of the one before, its last part."""
    this = now - now % MINUTE
    counts = dict(begun)
    part = 1 - (now - this) / MINUTE
    return (counts.get(this, 0) + part * counts.get(this - MINUTE, 0)) / MINUTE
