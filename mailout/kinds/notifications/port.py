"""What the notification worker needs of a producer's queue, and what a run tells of its work."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
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

    def reported(self, rows: Sequence[ProducerRow]) -> set[tuple[int, str]]:
        """(row, message) for each message whose end its row was told: pending again, the row was requeued."""

    def still_ours(self, ids: Sequence[int]) -> set[int]:
        """Of these, the rows that we still hold; their lock begins again."""

    def write(self, results: Sequence[RowResult]) -> set[int]:
        """Results of rows that we still hold, and which those were."""

    def release(self, delays: Mapping[int, float]) -> None:
        """Not now, and no attempt spent: rows that may be picked again in so many seconds."""

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
    """What became of the rows that a run picked; of each that is not over, what it heard last."""

    sent: int = 0
    skipped: int = 0
    failed: int = 0
    problems: list[str] = field(default_factory=list)  # what holds mail up now
    _not_over: dict[int, str] = field(default_factory=dict)
    _of_copies: set[tuple[int, str, object]] = field(default_factory=set)

    @property
    def retried(self) -> int:
        """Rows whose last attempt failed and that have another one."""
        return sum(heard == "pending" for heard in self._not_over.values())

    @property
    def waiting(self) -> int:
        """Rows that may not be sent yet."""
        return len(self._not_over) - self.retried

    def wait(self, rows: Iterable[int]) -> None:
        self._not_over |= dict.fromkeys(rows, "waiting")

    def lost(self, row: int) -> None:
        """Another worker has it."""
        self._not_over.pop(row, None)

    def count(self, result: RowResult, *, on_a_copy: bool) -> bool:
        """False: it was counted before. Every copy of a producer's database has its rows as they were."""
        id, status = result.row.notification_id, result.status
        self.lost(id)
        if status == "pending":
            self._not_over[id] = status
            return True
        if on_a_copy:
            if (known := (id, status, result.error.get("outboxId"))) in self._of_copies:
                return False
            self._of_copies.add(known)
        self.sent += status == "sent"
        self.skipped += status == "skipped"
        self.failed += status == "failed"
        return True

    def as_json(self) -> Mapping[str, object]:
        names = ("sent", "skipped", "failed", "retried", "waiting", "problems")
        return {name: getattr(self, name) for name in names}

    def said(self, where: str = "") -> str:
        """`2 notifications sent, 1 skipped, 0 failed, 1 for later.`"""
        sent = f"{count(self.sent, 'notification')} sent{where}, {self.skipped} skipped, {self.failed} failed"
        more = [(self.retried, "to be tried again"), (self.waiting, "for later")]
        return ", ".join([sent, *(f"{n} {what}" for n, what in more if n)]) + "."
