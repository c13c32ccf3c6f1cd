"""One scrape: the counts from the store, and how it stands now. A few short reads, whatever has been sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mailout.insight.metrics import metric_rows
from mailout.insight.metrics.port import (
    DURATION,
    ENDS,
    SIGN_UP_RESULTS,
    VALIDATION_OF,
    Counter,
    MetricsStore,
    Sample,
)
from mailout.outbox.delivery import error_codes, outbox_rows
from mailout.outbox.delivery.states import Column, State
from mailout.outbox.queue.mailout import DeferReason, Status

FINAL_STATES = (State.SENT, State.FAILED, State.VALIDATION_FAILED, State.SUPPRESSED)
MINUTE = 60.0

_TOLD: Mapping[Counter, tuple[str, str, Sequence[str]]] = {
    Counter.TRANSITIONS: ("state", "Messages that came into a state.", list(State)),
    Counter.VALIDATION_FAILURES: (
        "type",
        "Messages that were wrong and not sent, by the check that said so.",
        sorted(set(VALIDATION_OF.values())),
    ),
    Counter.RETRIES: (
        "category",
        "Attempts that will be made again, by the kind of error.",
        [error_codes.TRANSIENT_ERROR, error_codes.TIMEOUT_ERROR, error_codes.QUOTA_ERROR],
    ),
    Counter.DEFERS: ("reason", "Mailouts that were made to wait, by the reason.", list(DeferReason)),
    Counter.SIGN_UPS: (
        "result",
        "Posts to /join by what became of them, and sign-ups that were confirmed.",
        SIGN_UP_RESULTS,
    ),
}
"""The one label of each, what it counts, and the values that are shown as 0 before the first: a counter that
appears with its first count hides it from `increase`."""


class _Families(Collector):
    """What the client library writes out: the store has counted, no process."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = [family for family in families if family.samples]

    def collect(self) -> Iterable[Metric]:
        return self._families


def scrape(store: MetricsStore, *, scope: str, rate: float) -> bytes:
    """`scope`: whose pace and quota; `rate`: what the settings allow, 0 for no limit."""
    return generate_latest(_Families([*_counted(metric_rows.counts(store)), *_gauges(store, scope, rate)]))


def _counted(counts: Mapping[Sample, float]) -> Iterator[Metric]:
    for counter, (label, help, known) in _TOLD.items():
        found = {value: n for (name, value), n in counts.items() if name == counter}
        yield _counter(counter, label, help, dict.fromkeys(known, 0.0) | found)
    ends = {str(state): counts.get((Counter.TRANSITIONS, state), 0.0) for state in FINAL_STATES}
    said = "Messages that came to an end, by the state that it was."
    yield _counter("pipeline_final_state_total", "state", said, ends)
    took = HistogramMetricFamily(
        DURATION, "How long the provider took, by the state it led to.", labels=["state"]
    )
    for state in State:
        if (f"{DURATION}_count", state) in counts:
            buckets = [(end, counts.get((f"{DURATION}_bucket", f"{state} {end}"), 0.0)) for end in ENDS]
            took.add_metric([state], buckets, counts.get((f"{DURATION}_sum", state), 0.0))
    yield took


def _counter(name: str, label: str, help: str, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(name, help, labels=[label])
    for value, n in values.items():
        family.add_metric([value], n)
    return family


def _gauges(store: MetricsStore, scope: str, rate: float) -> Iterator[Metric]:
    now, vitals, quota = store.now(), metric_rows.vitals(store, scope), outbox_rows.quota(store, scope)

    def gauge(name: str, help: str, samples: Mapping[str, float | None], label: str | None = None) -> Metric:
        """By the label's value; what nobody can tell is left out."""
        family = GaugeMetricFamily(name, help, labels=[label] if label else [])
        for value, n in samples.items():
            if n is not None:
                family.add_metric([value] if label else [], n)
        return family

    yield gauge(
        "mailout_queue_depth",
        "Mailouts that are not done, by status.",
        {s: vitals.queue.get(s, 0) for s in (Status.PENDING, Status.PROCESSING)},
        "status",
    )
    yield gauge(
        "mailout_messages",
        "Messages of mailouts that are not done, as the ledger has them.",
        {column: vitals.messages.get(column, 0) for column in Column},
        "state",
    )
    lag = None if vitals.oldest_event_at is None else max(0.0, now - vitals.oldest_event_at)
    yield gauge("mailout_event_lag_seconds", "The age of the oldest event not applied yet.", {"": lag or 0.0})
    yield gauge("mailout_sender_sessions", "Senders that are alive.", {"": vitals.sessions})
    begun = outbox_rows.begun_since(store, now - MINUTE)
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
