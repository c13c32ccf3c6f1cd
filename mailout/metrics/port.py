"""What metrics need of the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from mailout.delivery.port import Outbox
from mailout.feedback.port import Feedback
from mailout.metrics.model import Sample, Vitals
from mailout.queue.port import Queue


class Counts(Protocol):
    """What Prometheus gets. The counts only ever grow, whatever else is cleared away."""

    def add_counts(self, counts: Mapping[Sample, float]) -> None: ...
    def counts(self) -> Mapping[Sample, float]: ...
    def vitals(self, scope: str) -> Vitals:
        """How everything stands; `scope`: whose pace."""
        ...


class MetricsStore(Counts, Feedback, Outbox, Queue, Protocol):
    """What is counted on its way through."""

    def close(self) -> None: ...
