"""A mailout in the queue. `campaign_queue` is the single source of truth for why anything waits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, get_type_hints

from mailout.letters.content.port import Kind
from mailout.outbox.delivery.protocol import Ledger, RetryPlan
from mailout.outbox.delivery.single_mails import UNSERVED_SECONDS
from mailout.outbox.delivery.states import Column

QUEUE_EVERY = 60.0
"""Seconds between two looks at what is due."""
SILENCE = 0.3


class Status(StrEnum):
    """Where a mailout stands in the queue."""

    PENDING = "PENDING"  # waits: for its turn, its time, or (with a reason) for something else
    PROCESSING = "PROCESSING"  # somebody sends it
    COMPLETED = "COMPLETED"  # nothing pending, nothing in flight
    CANCELLED = "CANCELLED"  # mail already sent stays sent


class MailoutOutcome(StrEnum):
    """How a completed mailout ended."""

    SENT = "sent"  # every message sent or suppressed
    FAILED = "failed"  # some failed or are unknown


class DeferReason(StrEnum):
    """Why a mailout waits. The last five wait for a person and alone have no time."""

    RATE_PER_HOUR = "rate_per_hour"  # until the next full hour
    DAILY_LIMIT = "daily_limit"  # until the next day's window
    OUTSIDE_HOURS = "outside_hours"  # until the window opens
    QUOTA_EXHAUSTED = "quota_exhausted"  # an hour, or when the provider's window frees enough
    TRANSIENT_ERRORS = "transient_errors"  # 1, 5, 15, 60 minutes
    PAUSED = "paused"  # a person paused it
    REPUTATION = "reputation"  # bounces or complaints over the line
    CONFIGURATION_ERROR = "configuration_error"  # the account, a setting or the store is not as it must be
    DUPLICATE_CONTENT = "duplicate_content"  # the same went to the same list within 7 days
    UNTESTED = "untested"  # no test of exactly this content has gone out


WAITS_FOR_A_PERSON = frozenset(
    {
        DeferReason.PAUSED,
        DeferReason.REPUTATION,
        DeferReason.CONFIGURATION_ERROR,
        DeferReason.DUPLICATE_CONTENT,
        DeferReason.UNTESTED,
    }
)
_HOUR_AND_MORE, _WEEK_AND_MORE = 3_900.0, 8 * 86_400.0
LONGEST_WAIT_SECONDS: Mapping[DeferReason, float] = {
    DeferReason.RATE_PER_HOUR: _HOUR_AND_MORE,
    DeferReason.QUOTA_EXHAUSTED: _HOUR_AND_MORE,
    DeferReason.TRANSIENT_ERRORS: _HOUR_AND_MORE,
    DeferReason.DAILY_LIMIT: _WEEK_AND_MORE,
    DeferReason.OUTSIDE_HOURS: _WEEK_AND_MORE,
}
"""What lies further ahead was written by a clock that was ahead: it is due. The store's SQL says the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMailout:
    """What is written when a mailout is asked for."""

    id: str
    kind: Kind
    ref: str
    subject: str = ""
    company_id: str = "default"
    list_key: str | None = None
    from_name: str | None = None  # for recipients who have none of their own
    reply_to: str | None = None  # None: as REPLY_TO says
    public: bool | None = None  # in the archive on the web; None: as its list says
    slug: str | None = None  # its name there, for good
    is_test: bool = False
    is_rehearsal: bool = False  # written to a folder: nobody gets it
    priority: int = 0  # higher goes first
    scheduled_at: float | None = None
    campaign_tag: str | None = None
    send_batch_id: str | None = None
    actor: str | None = None
    retry_plan: RetryPlan | None = None  # None: as the process that sends it is set up
    segment: str | None = None  # the name of a filter over the subscribers of its list
    content_hash: str | None = None  # a letter's; each message of an article has its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Mailout(NewMailout):
    """One row of `campaign_queue`."""

    public: bool = False
    published_at: float | None = None  # by a person; else it is from its first message on
    unpublished_at: float | None = None
    status: Status = Status.PENDING
    outcome: MailoutOutcome | None = None
    deferred_until: float | None = None
    defer_reason: DeferReason | None = None
    defer_note: str | None = None  # a sentence for people
    locked_by: str | None = None
    locked_at: float | None = None
    ledger: Ledger = field(default_factory=Ledger)
    created_at: float = 0.0
    frozen_at: float | None = None
    started_at: float | None = None
    completed_at: float | None = None
    archived_at: float | None = None  # since then its messages are not in the store; its counts are final
    archived_to: str | None = None  # machine and folder
    metrics: Mapping[str, int] = field(default_factory=dict)  # delivered, bounced, ... by event
    snoozed: int = 0  # not written to when it was frozen: they had asked for a pause
    transient_pauses: int = 0  # after transient errors, and
    transient_sent: int = 0  # how many had been sent by the last of them
    acknowledged: Mapping[str, int] = field(default_factory=dict)  # what a person knew on resuming it
    segment_filter: Mapping[str, Any] | None = None  # as it was when the audience was frozen

    @classmethod
    def columns(cls) -> Mapping[str, Any]:
        """What a store reads for it."""
        counts = {one.name: int for one in fields(Ledger)}
        return {name: hint for name, hint in get_type_hints(cls).items() if name != "ledger"} | counts

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Mailout:
        """Of a row as a store has read it: moments in seconds, JSON as what it stands for."""
        plain = {one.name: row[one.name] for one in fields(cls) if one.name != "ledger"}
        read = {
            "kind": Kind(row["kind"]),
            "retry_plan": RetryPlan.of(row["retry_plan"]),
            "status": Status(row["status"]),
            "outcome": MailoutOutcome(row["outcome"]) if row["outcome"] else None,
            "defer_reason": DeferReason(row["defer_reason"]) if row["defer_reason"] else None,
            "ledger": Ledger(row["recipients"], *(row[column.value] for column in Column)),
        }
        return cls(**plain | read)

    @property
    def reach(self) -> str | None:
        """Of a frozen one with a segment: to how many of how many it goes."""
        if self.segment_filter is None or self.frozen_at is None:
            return None
        return f"{self.ledger.recipients:,} of {self.segment_filter['of']:,}"

    @property
    def place(self) -> int:
        """With `urgency` and `age`: in the order in which they would be sent, then the newest first."""
        return {Status.PROCESSING: 0, Status.PENDING: 1}.get(self.status, 2)

    @property
    def urgency(self) -> int:
        return -self.priority if self.place < 2 else 0

    @property
    def age(self) -> float:
        return self.created_at if self.place < 2 else -self.created_at

    def may_start(self, now: float, stale: float) -> bool:
        """Pending and due, or begun, and nobody was seen for `stale` seconds."""
        if self.status is Status.PROCESSING:
            return self.silent_for(now, stale) > stale
        if self.status is not Status.PENDING or (self.scheduled_at or 0.0) > now:
            return False
        if self.defer_reason is None:
            return True
        wait = (self.deferred_until or math.inf) - now
        return not 0.0 < wait <= LONGEST_WAIT_SECONDS.get(self.defer_reason, math.inf)

    def silent_for(self, now: float, lease: float) -> float:
        """Seconds since its sender was heard of. A lease ahead of now, the clock was: nobody knows when."""
        at = self.locked_at or 0.0
        return math.inf if at > now + lease else now - at

    @property
    def due_since(self) -> float:
        """Of one that may start: since when."""
        return max(self.created_at, self.scheduled_at or 0.0, self.deferred_until or 0.0)

    def is_overdue(self, now: float) -> bool:
        """Due for minutes, and nobody has taken it up. One that was begun and has no reason to wait was
        stopped, or resumed just now: nobody knows since when it is due."""
        asked = self.started_at is None or self.defer_reason is not None
        since = now - UNSERVED_SECONDS
        return self.status is Status.PENDING and asked and self.due_since <= since and self.may_start(now, 0)

    @property
    def planned_for(self) -> float | None:
        """When it is to begin, of one that was given a time and has not begun."""
        return self.scheduled_at if self.started_at is None else None

    @property
    def pauses_in_a_row(self) -> int:
        """Pauses after transient errors since something was sent."""
        return self.transient_pauses if self.ledger.sent <= self.transient_sent else 0

    @property
    def is_tried_again(self) -> bool:
        """Something that may pass kept it from sending, and it has sent nothing since."""
        tried = self.pauses_in_a_row > 0 and self.defer_reason is None
        return tried or self.defer_reason is DeferReason.TRANSIENT_ERRORS

    def goes_on_by(self, now: float, lease: float) -> float | None:
        """Nobody sends it, although it was begun: when the queue goes on with it at the latest. None: it is
        being sent, or waits, or is over. A living sender is heard of four times within its lease."""
        if self.status is not Status.PROCESSING or self.locked_at is None:
            return None
        silent = self.silent_for(now, lease)
        return now + max(0.0, lease - silent) + QUEUE_EVERY if silent > lease * SILENCE else None


def untaken(mailouts: Sequence[Mailout], now: float, lease: float) -> Sequence[Mailout]:
    """Those that are overdue while nobody sends anything: else they may wait for their turn."""
    if any(one.status is Status.PROCESSING and one.goes_on_by(now, lease) is None for one in mailouts):
        return ()
    return [one for one in mailouts if one.is_overdue(now)]
