"""The words of feedback (what was received, what it means, what it changes), and what it needs of the store:
the inbox of events and people who leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypedDict

from mailout.base.error_log import ErrorLog
from mailout.base.select import Reads
from mailout.letters.audience.port import Subscribers
from mailout.outbox.delivery.port import Outbox
from mailout.outbox.delivery.protocol import Attempt


class EventType(StrEnum):
    """What happened to a message."""

    DELIVERED = "delivered"  # the recipient's server took it
    OPEN = "open"
    CLICK = "click"
    BOUNCE = "bounce"
    SPAMREPORT = "spamreport"  # the recipient complained
    UNSUBSCRIBE = "unsubscribe"
    SEND = "send"  # SES took it
    DELAYED = "delayed"  # SES keeps trying
    REJECTED = "rejected"  # SES took it, found a virus, and threw it away
    RENDERING_FAILURE = "rendering_failure"  # SES took it and could not fill the template
    NOT_SPAM = "not_spam"  # a "complaint" that says the opposite
    SUBSCRIPTION = "subscription"  # preferences changed on SES's own page, short of leaving


METRIC_OF: Mapping[EventType, str] = {
    EventType.DELIVERED: "delivered",
    EventType.OPEN: "opened",
    EventType.CLICK: "clicked",
    EventType.BOUNCE: "bounced",
    EventType.SPAMREPORT: "complained",
    EventType.UNSUBSCRIBE: "unsubscribed",
    EventType.DELAYED: "delayed",
    EventType.REJECTED: "rejected",
    EventType.RENDERING_FAILURE: "rendering_failures",
}
"""A mailout's counts: of messages, each once, however often an event is told or repeated."""

UNDO_SECONDS = 86_400.0
"""How long an unsubscribe that was made on the dashboard can be undone there."""
SIMULATOR = "@simulator.amazonses.com"

REVOKING: Mapping[EventType, tuple[str, str]] = {
    EventType.REJECTED: ("MESSAGE_REJECTED", "SES accepted the message and then rejected it."),
    EventType.RENDERING_FAILURE: ("RENDERING_FAILURE", "SES could not fill the message's template."),
}
"""Events that undo an acceptance, with what the outbox keeps of them. Every other event proves one."""


@dataclass(frozen=True, slots=True)
class Event:
    """One SES event, whichever of its two shapes it came in."""

    type: EventType
    at: float | None  # None: SES did not say
    provider_message_id: str | None = None
    attempt: Attempt | None = None  # from our tags; None: not tagged, or not ours
    mailout_id: str | None = None
    recipients: tuple[str, ...] = ()  # normalised
    destination: tuple[str, ...] = ()  # whom the mail was for
    bounce_type: str | None = None
    bounce_subtype: str | None = None
    detail: Mapping[str, str] = field(default_factory=dict)


# ── The inbox ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Received:
    """A verified message on its way into `events_inbox`. The same id is the same message."""

    id: str
    source: str  # "sns" or "sqs"
    payload: str


@dataclass(frozen=True, slots=True)
class WaitingEvent(Received):
    """A row of `events_inbox` that has not been applied."""

    received_at: float


# ── What an event changes ────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class StatusChange:
    """What is known of a subscriber now. It takes effect by priority, whenever it comes."""

    status: str  # "unsubscribed" or "bounced"
    at: float
    bounce_type: str | None = None
    bounce_subtype: str | None = None
    complained: bool = False


@dataclass(frozen=True, slots=True)
class Effect:
    """One event for one recipient, ready to be applied."""

    id: str  # of the row in `delivery_events`: the same event meets itself
    type: EventType
    at: float
    email: str | None
    provider_message_id: str | None = None
    attempt: Attempt | None = None
    mailout_id: str | None = None  # from our tags, for a message that is not in the outbox any more
    change: StatusChange | None = None
    recount: bool = False  # it says something of the address's soft bounces: count them again
    detail: Mapping[str, str] = field(default_factory=dict)

    @property
    def metric(self) -> str | None:
        """Which of a mailout's counts it adds to. SES's mailbox simulator is nobody: it counts in no rate."""
        simulated = self.email is not None and self.email.endswith(SIMULATOR)
        return None if simulated else METRIC_OF.get(self.type)

    @property
    def revokes(self) -> tuple[str, str] | None:
        """The code and message of a rejection; None: it is none."""
        if self.type not in REVOKING:
            return None
        code, text = REVOKING[self.type]
        why = self.detail.get("reason") or self.detail.get("errorMessage")
        return code, f"{text} {why}" if why else text


@dataclass(frozen=True, slots=True)
class EventReading:
    """What one row of the inbox comes to: effects, or the reason why there are none."""

    inbox_id: str
    effects: Sequence[Effect] = ()
    problem: tuple[str, str] | None = None  # an error record's code and message
    dead: bool = False  # nobody can read it: the payload goes to the dead letters


@dataclass(frozen=True, slots=True)
class Applied:
    """What a batch changed."""

    events: int = 0  # new rows of `delivery_events`
    repeated: int = 0  # known already
    strangers: int = 0  # of messages that are not in our outbox
    confirmed: int = 0  # messages that an event made SENT
    revoked: int = 0  # and those that one made FAILED
    statuses: int = 0  # subscribers whose standing changed
    problems: int = 0
    dead: int = 0

    def __add__(self, other: Applied) -> Applied:
        return Applied(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What erasing a person touched. The counts of their mailouts stay as they were."""

    subscribers: int = 0
    messages: int = 0
    events: int = 0
    errors: int = 0
    mailouts: tuple[str, ...] = ()  # whose reports have to be written again


@dataclass(frozen=True, slots=True)
class Doubts:
    """Messages whose outcome nobody knows."""

    unknown: int = 0
    oldest: float | None = None


@dataclass(frozen=True, slots=True)
class Drift:
    """A counter that says less than the messages do: a limit could be passed."""

    scope: str
    kind: str
    key: str
    counted: int
    charged: int


# ── The store ────────────────────────────────────────────────────────────────────────────────────


class DeliveryEvent(TypedDict):
    """One row of `delivery_events`."""

    id: str
    message_id: str | None
    campaign_id: str | None
    email: str | None
    event_type: str
    provider_message_id: str | None
    detail: Mapping[str, Any]
    event_at: float


class Feedback(Reads, Protocol):
    """What comes back: the inbox of events, what they change, and people who leave."""

    def receive_events(self, received: Sequence[Received]) -> int:
        """Into the inbox, in one commit; how many were new. A known id changes nothing."""

    def apply_events(self, readings: Sequence[EventReading]) -> Applied:
        """One transaction. A row of the inbox that was applied before is passed over."""

    def change_statuses(self, changes: Mapping[str, StatusChange]) -> int:
        """News of subscribers by normalised address; how many of them stand differently now."""

    def unsubscribe(self, email_norm: str, list_key: str | None, message_id: str | None = None) -> bool:
        """From one list, or (None) from everything. Who was not known is remembered as gone. Whether they may
        come back: for a day, and not after a complaint or a bounce.

        It counts for the mailout of the message whose link was followed; without one, for the last mailout
        that reached the address.
        """

    def unsubscribe_by_hand(self, email_norm: str, list_key: str | None) -> bool:
        """As somebody at the dashboard does it for a person; False: they are not subscribed."""

    def undo_unsubscribe(self, email_norm: str, list_key: str | None, within: float = UNDO_SECONDS) -> bool:
        """Take back what was done so within so many seconds. False: too late, or something else has ended it
        (the person, a complaint, a bounce, a file)."""

    def resubscribe(self, email_norm: str, list_key: str | None, within: float | None = None) -> bool:
        """A person takes back their unsubscribe; False: it is not theirs to undo (a complaint, a bounce), or
        longer ago than so many seconds."""

    def forget(self, email_norm: str, instead: str) -> Forgotten:
        """Erase a person: `instead` stands wherever the address stood. Counts stay.

        What stays is a keyed hash of the address, by which an import knows whom not to bring back.
        """


class FeedbackStore(Feedback, Subscribers, Outbox, ErrorLog, Protocol):
    """What feedback reads and changes."""
