"""What the notification worker needs of a producer's queue, and what a run tells of its work."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mailout.insight.reporting.phrases import count


@dataclass(frozen=True, slots=True)
class ProducerRow:
    """One locked row of the producer's queue with everything it refers to, as it is written there."""

    notification_id: int
    attempts: int
    notification: Mapping[str, Any]
    event: Mapping[str, Any] | None
    subscription: Mapping[str, Any] | None
    section: Mapping[str, Any] | None = None
    course: Mapping[str, Any] | None = None
    meetings: Sequence[Mapping[str, Any]] = ()
    # Of a subscription that has set a limit:
    notified: int = 0  # how often it was notified
    ahead: int = 0  # its rows before this one that wait, too


@dataclass(frozen=True, slots=True, kw_only=True)
class RowResult:
    """What one completed attempt writes into the producer's row."""

    row: ProducerRow
    status: str  # sent, pending, skipped, failed
    error: Mapping[str, Any]
    spends_attempt: bool = True
    pick_in: float | None = None  # of a pending row: seconds until it may be picked again
    event: str | None = None  # notify_sent, notify_failed


class Producer(Protocol):
    """The producer's database: every call is one short transaction."""

    def lock(self, limit: int) -> Sequence[ProducerRow]:
        """Pending rows that nobody holds; they are ours for the lock's time."""
        ...

    def reported(self, rows: Sequence[ProducerRow]) -> set[tuple[int, str]]:
        """(row, message) for each message whose end its row was told: pending again, the row was requeued."""
        ...

    def still_ours(self, ids: Sequence[int]) -> set[int]:
        """Of these, the rows that we still hold; their lock begins again."""
        ...

    def write(self, results: Sequence[RowResult]) -> set[int]:
        """Results of rows that we still hold, and which those were."""
        ...

    def release(self, delays: Mapping[int, float]) -> None:
        """Not now, and no attempt spent: rows that may be picked again in so many seconds."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class QueuedNotification:
    """One row of the producer's queue as people look at it."""

    id: int
    status: str
    attempts: int
    last_attempt_at: str | None  # as it is written there
    error: str | None  # what was reported to the row, as JSON
    contact: str | None  # None: its subscription is gone

    @property
    def said(self) -> str:
        """What was reported: its message if there is one, else as it is written."""
        try:
            told = json.loads(self.error or "{}")
        except ValueError:
            told = self.error
        words = told.get("message") or told.get("code") or "" if isinstance(told, Mapping) else told
        return str(words)[:300]

    @property
    def can_be_requeued(self) -> bool:
        """A pending one is picked by itself."""
        return self.status in ("sent", "skipped", "failed")


@dataclass(frozen=True, slots=True)
class ProducerQueue:
    """How many rows are in which status, and some of them, the newest first."""

    counts: Mapping[str, int]
    rows: Sequence[QueuedNotification]


@dataclass(slots=True)
class NotificationCounts:
    """What a run did with the rows it picked."""

    sent: int = 0
    skipped: int = 0
    failed: int = 0
    retried: int = 0
    waiting: int = 0
    problems: list[str] = field(default_factory=list)

    def said(self, where: str = "") -> str:
        """`2 notifications sent, 1 skipped, 0 failed, 1 for later.`"""
        sent = f"{count(self.sent, 'notification')} sent{where}, {self.skipped} skipped, {self.failed} failed"
        more = [(self.retried, "to be tried again"), (self.waiting, "for later")]
        return ", ".join([sent, *(f"{n} {what}" for n, what in more if n)]) + "."
