"""The words a sender and a store exchange: one `step` a round (ARCHITECTURE.md, "The protocol")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mailout.outbox.delivery.states import Column, State


@dataclass(frozen=True, slots=True)
class Timing:
    """Every wait of the protocol, in the proportions of `LOCK_SECONDS` so that tests can be quick."""

    lease: float  # a session is its sender's for so long after each step
    call_limit: float  # one transport call
    margin: float  # between the end of a call and the end of the lease
    reap_grace: float  # after the lease, before its attempts become UNKNOWN
    settle_wait: float  # after the reap, before a person may send an UNKNOWN again

    @classmethod
    def of(cls, lock_seconds: float) -> Timing:
        return cls(
            lease=lock_seconds,
            call_limit=min(30.0, lock_seconds / 4),
            margin=min(5.0, lock_seconds / 24),
            reap_grace=min(45.0, lock_seconds * 45 / 120),
            settle_wait=min(900.0, lock_seconds * 900 / 120),
        )


@dataclass(frozen=True, slots=True)
class Attempt:
    """One begun attempt. The epoch never falls, so an old attempt cannot speak for a new one."""

    id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one attempt, already decided: the state it leads to and when to try again."""

    attempt: Attempt
    state: State
    provider_message_id: str | None = None
    code: str | None = None
    category: str | None = None
    message: str | None = None
    original_code: str | None = None
    retry_in: float | None = None  # seconds from the store's now; of one that is tried once: as asked for
    duration_ms: int | None = None
    age: float = 0.0  # seconds since the answer came
    give_back: bool = False  # surely not accepted, and not the message's fault: the attempt is returned
    uncharge: bool = False  # surely not accepted: the counters are returned


REHEARSED = " rehearsal"
"""Ends the key of a bucket that rehearsals are charged to; the stores know it, too."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """An hour or a day that attempts are charged to while the store's clock is within it.

    Made in Python, because only Python knows `SEND_TIMEZONE`; the sender hands in this one and the next,
    and the store takes the one its own clock is in. The limit holds for all together and for each company.
    """

    kind: str  # "hour" or "day"
    key: str  # for example "2026-11-15T09"
    starts_at: float
    ends_at: float
    limit: int | None = None  # None: counted, not limited


SLACK = 1.005
"""Slots are a little further apart than 1 / rate, so that small lateness never makes a second too full."""
BULK_SLACK = 1.008
"""Of calls with many messages: one that arrives 5 ms late must not fill the second after it too much."""
UNLIMITED_RATE = 1000.0
"""What a rate of 0 (no limit) counts as once a provider throttles: its factor needs something to act on."""
PACE_RECOVERY_A_SECOND = 0.05 / 60  # of the full rate, a second


@dataclass(frozen=True, slots=True)
class Pace:
    """The pacer that all senders of one account share. Rate 0: no limit. Its rules go to the store with each
    step: they stand here alone."""

    scope: str
    rate: float
    lead: float = 0.05  # a slot is never nearer than a round trip
    horizon: float = 1.0  # nor further: at most a second of sending is in doubt
    group: int = 1  # messages a call: it takes so many slots at once, however full it is
    throttled: bool = False  # the provider asked for less: slow down
    slack: float = SLACK
    unlimited_rate: float = UNLIMITED_RATE
    recovery: float = PACE_RECOVERY_A_SECOND
    slower: float = 0.7  # a throttle multiplies the rate by so much
    slowest: float = 0.05  # the smallest part of the full rate that throttles lead to
    yields: float = 1.0  # seconds that a mailout gives the pace to single mails before it asks again


@dataclass(frozen=True, slots=True)
class Step:
    """One round: what has happened, and what is wanted next."""

    session: str
    n: int
    lease: float
    pace: Pace
    results: Sequence[Result] = ()
    withdraw: Sequence[Attempt] = ()  # calls that were surely never made
    want: int = 0
    cursor: int = 0
    buckets: Sequence[Bucket] = ()
    recover: bool = False  # the step before was lost: say what is begun
    close: bool = False  # the last one of this session


TRIED_ONCE = "tried_once"
"""Among a message's variables: the program that handed it in tries again, and counts the attempts."""
TAGGED_WITH = "tagged_with"
"""The names of those variables that travel with the mail as tags, and through the log."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A message that this session has begun, and when its call may start."""

    attempt: Attempt
    seq: int
    number: int  # which attempt this is, from 1
    email: str
    content_hash: str
    mailout_id: str | None
    company_id: str
    from_name: str | None
    variables: Mapping[str, str]
    slot: float | None  # on the store's clock; None: at once
    request_id: str | None = None  # of a single mail: the request that asked for it
    category: str | None = None  # of a single mail: transactional or marketing
    reply_to: str | None = None  # of a single mail, as its sender wants it
    headers: Mapping[str, str] | None = None
    list_key: str | None = None  # which list it is for

    @property
    def is_tried_once(self) -> bool:
        return self.mailout_id is None and TRIED_ONCE in self.variables

    @property
    def tags(self) -> Mapping[str, str]:
        """Of a message without a mailout: a mailout's variables are what its readers are called."""
        named = self.variables.get(TAGGED_WITH, "").split() if self.mailout_id is None else ()
        return {name: self.variables[name] for name in named if self.variables.get(name)}


@dataclass(frozen=True, slots=True)
class Ledger:
    """`recipients = pending + in_flight + sent + failed + suppressed + unknown`, at every commit."""

    recipients: int = 0
    pending: int = 0
    in_flight: int = 0
    sent: int = 0
    failed: int = 0
    suppressed: int = 0
    unknown: int = 0

    @property
    def balances(self) -> bool:
        return self.recipients == sum(int(getattr(self, column.value)) for column in Column)

    @property
    def done(self) -> int:
        """How many neither wait nor are being sent."""
        return self.recipients - self.pending - self.in_flight

    @property
    def settled(self) -> bool:
        """Nothing waits and nothing is being sent."""
        return self.pending + self.in_flight == 0


class Halt(StrEnum):
    """Why a step grants nothing although something is due."""

    PAUSED = "paused"  # this mailout waits for a person
    ALL_PAUSED = "all_paused"  # everything waits for a person
    CANCELLED = "cancelled"
    STOP = "stop"  # this session was asked to end
    DEFERRED = "deferred"  # somebody deferred it meanwhile
    NOT_FROZEN = "not_frozen"  # its audience is still being written


@dataclass(frozen=True, slots=True)
class StepReply:
    """The store's answer, with its own time."""

    now: float
    fenced: bool = False
    halt: Halt | None = None
    rows: Sequence[Claimed] = ()
    recovered: Sequence[Attempt] = ()
    limited: str | None = None  # the limit that is used up: "hour", "day" or "quota"
    next_slot_at: float | None = None  # the pacer has none before; ask again shortly before it
    next_due_at: float | None = None  # when nothing was granted: when the next waiting message is due
    ledger: Ledger | None = None
    suppressed: int = 0  # were due, and their recipient had unsubscribed
    refused: int = 0  # were due, and their recipient is not there
    missing: Sequence[str] = ()  # messages with a result and without a row: each is a dead letter now


class OutcomeKind(StrEnum):
    """How one transport call ended for one message."""

    SENT = "sent"  # accepted
    PERMANENT = "permanent"  # refused for good
    TRANSIENT = "transient"  # surely not accepted; worth another attempt
    THROTTLED = "throttled"  # surely not accepted: too fast; costs no attempt
    QUOTA = "quota"  # surely not accepted: the provider's allowance is spent
    STOP = "stop"  # configuration or account: sending on is pointless
    UNKNOWN = "unknown"  # it may have been accepted
    INVALID = "invalid"  # never called: the message is wrong


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the transport says of one message."""

    kind: OutcomeKind
    provider_message_id: str | None = None
    code: str | None = None
    category: str | None = None
    message: str | None = None
    original_code: str | None = None
    retry_after: float | None = None  # seconds that the provider asks for


@dataclass(frozen=True, slots=True)
class RetryPlan:
    """Delay n follows attempt n; attempt `max_attempts` is the last."""

    max_attempts: int = 5
    delays: Sequence[float] = field(default=(1.0, 5.0, 30.0, 120.0, 600.0))
    jitter: float = 0.25  # each delay is so much shorter or longer, by a hash; 0: exactly as it says
    dead_letters: bool = False  # what failed for good is kept as a dead letter; endless throttling fails, too

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None) -> RetryPlan | None:
        """As a store keeps it."""
        return None if stored is None else cls(**{**stored, "delays": tuple(stored["delays"])})


ARTICLE_RETRIES = RetryPlan(max_attempts=4, delays=(1.0, 4.0, 10.0), jitter=0.0, dead_letters=True)
