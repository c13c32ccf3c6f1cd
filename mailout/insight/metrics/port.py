"""What is counted, what the store's own tables show, and what metrics need of the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from mailout.outbox.delivery.pacing import PaceState
from mailout.outbox.delivery.port import Outbox
from mailout.outbox.feedback.port import Feedback
from mailout.outbox.queue.port import Queue

Sample = tuple[str, str]
"""A name and the values of its labels, with a space between: what the store counts by."""


class Counter(StrEnum):
    """What is counted."""

    TRANSITIONS = "pipeline_state_transitions_total"
    VALIDATION_FAILURES = "pipeline_validation_failures_total"
    RETRIES = "pipeline_retry_count_total"
    DEFERS = "mailout_defers_total"
    SIGN_UPS = "mailout_sign_ups_total"


DURATION = "pipeline_processing_duration_seconds"
BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""The upper ends of its buckets: a call is given up after 30 seconds."""
ENDS = (*(f"{end:g}" for end in BUCKETS), "+Inf")
"""The same as labels, and the bucket that holds all."""

SIGN_UP_RESULTS = ("sent", "all", "network", "address", "bot", "joined")
"""What became of a post to /join: the confirmation is in the outbox, a limit refused it, a program posted it;
and that somebody confirmed one."""

VALIDATION_OF: Mapping[str, str] = {
    "INVALID_PAYLOAD": "INTEGRITY",
    "OUTBOX_NOT_FOUND": "OUTBOX",
    "RECIPIENT_NOT_FOUND": "RECIPIENT",
    "INVALID_EMAIL": "RECIPIENT",
    "INVALID_TEMPLATE": "TEMPLATE",
}
"""Which of the four validations a code belongs to; of an unknown code, `OTHER`."""
OTHER = "OTHER"


@dataclass(frozen=True, slots=True)
class Vitals:
    """How the store stands, read from indexes and single rows: the same effort for a million messages."""

    queue: Mapping[str, int] = field(default_factory=dict)  # unfinished mailouts by status
    messages: Mapping[str, int] = field(default_factory=dict)  # of these, by the ledger's columns
    oldest_event_at: float | None = None  # in the inbox, not applied yet
    sessions: int = 0  # senders that are alive
    pace: PaceState = field(default_factory=PaceState)


class MetricsStore(Feedback, Outbox, Queue, Protocol):
    """What is counted on its way through, and the counts, which only ever grow, whatever is cleared away."""

    def add_counts(self, counts: Mapping[Sample, float]) -> None: ...
    def close(self) -> None: ...
