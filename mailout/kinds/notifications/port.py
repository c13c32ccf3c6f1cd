"""What the notification worker needs: the producer's queue, our notes about it, and a way to send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mailout.outbox.delivery.error_codes import QUOTA_ERROR, TRANSIENT_ERROR
from mailout.outbox.delivery.states import State

# ── our outbox ──


@dataclass(frozen=True, slots=True)
class KnownMessage:
    """A notification's message as our outbox has it."""

    id: str
    state: State
    epoch: int
    provider_message_id: str | None = None
    code: str | None = None
    category: str | None = None
    message: str | None = None
    retry_after: float | None = None  # seconds that the provider asked for when the attempt failed
    given_up_for: float | None = None  # seconds since its sender was given up, which may still come back

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> KnownMessage | None:
        """From the outbox's columns; None: the row has no message."""
        if row["id"] is None:
            return None
        return cls(
            row["id"],
            State(row["state"]),
            row["epoch"],
            row["ses_message_id"],
            row["error_code"],
            row["error_category"],
            row["error_message"],
            row["retry_after"],
            row["given_up_for"],
        )

    @property
    def may_be_tried_again(self) -> bool:
        return self.state is State.FAILED and self.category in (TRANSIENT_ERROR, QUOTA_ERROR)


@dataclass(frozen=True, slots=True)
class KnownNotification:
    """What we noted about one row of the producer: how often it was requeued, and what was reported to it."""

    requeues: int = 0
    told_epoch: int = -1  # the last attempt whose result the producer's row holds
    message: KnownMessage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNotification:
    """A message for the outbox, and the producer's row that it belongs to."""

    key: str
    id: str
    email: str
    content_hash: str
    variables: Mapping[str, str]
    dedupe_key: str
    request_id: str | None
    is_rehearsal: bool = False  # goes to a folder, and never to people


@dataclass(frozen=True, slots=True)
class Reported:
    """The producer's row holds the result of this attempt; `ended`: it will not be picked by itself again."""

    key: str
    epoch: int
    ended: bool


class Notifications(Protocol):
    """Our notes about a producer's rows, beside the outbox."""

    def recall_notifications(self, keys: Sequence[str], *, requeue: bool) -> Mapping[str, KnownNotification]:
        """What is known of rows that are pending at the producer.

        `requeue`: one that had ended is pending again because somebody requeued it; it gets a new number, and
        no message yet. Its old message is not sent any more, whatever its sender still says.
        """
        ...

    def put_notifications(self, new: Sequence[NewNotification]) -> None:
        """Into the outbox, each once; one whose last attempt failed and was reported waits again."""
        ...

    def take_back_notifications(self, messages: Mapping[str, str]) -> Mapping[str, State]:
        """By key: those that nobody has begun become SUPPRESSED, and their rows may have another message.

        The state of each message afterwards.
        """
        ...

    def note_reported(self, reported: Sequence[Reported]) -> None:
        """After the producer's commit: a crash in between is then never taken for a requeue."""
        ...


# ── the producer ──


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
    notified: int = 0  # how often this subscription was notified


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

    def still_ours(self, ids: Sequence[int]) -> set[int]:
        """Of these, the rows that we still hold; their lock begins again."""
        ...

    def write(self, results: Sequence[RowResult]) -> set[int]:
        """Results of rows that we still hold, and which those were."""
        ...

    def release(self, delays: Mapping[int, float]) -> None:
        """Not now, and no attempt spent: rows that may be picked again in so many seconds."""
        ...

    def was_reported(self, row: ProducerRow, message_id: str) -> bool:
        """Whether the row already says how this message ended."""
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
