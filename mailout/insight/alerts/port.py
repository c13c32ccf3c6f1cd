"""The words of alerts (what is looked at, what is said, what was said), and what they need of the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from mailout.insight.history.notion_troubles import NotionTrouble
from mailout.outbox.delivery.port import Outbox
from mailout.outbox.delivery.single_mails import SingleMails, SingleMailsWaiting
from mailout.outbox.queue.mailout import Mailout
from mailout.outbox.queue.port import Queue


class AlertKind(StrEnum):
    """What an alert is about; `mailout.alert.<kind>` is the event that Prefect gets."""

    DEFERRED = "deferred"  # a mailout waits for a person, or has not moved for an hour
    UNKNOWN = "unknown"  # a mailout has messages in doubt
    COMPLAINTS = "complaints"  # more readers call a mailout spam than Gmail and Yahoo like
    QUOTA = "quota"  # the provider's quota is nearly spent
    SINGLE_MAILS = "single_mails"  # single mails cannot be sent
    EVENTS = "events"  # SES events are not applied, or do not come
    NOTION = "notion"  # letters wait, because Notion cannot be read or written
    SIGN_UPS = "sign_ups"  # too many strangers ask to join, or their confirmations bounce


SIGN_UP_BRAKE = "sign-up brake"
"""Among the store's notes: when the limit of all sign-ups last refused one."""


@dataclass(frozen=True, slots=True)
class Signs:
    """What the store shows besides its mailouts."""

    now: float  # the store's time, before anything else was looked at
    quota_most: int | None = None  # what the provider allows in 24 hours; None: no limit, or never asked
    events_waiting: int = 0  # in the inbox
    events_waiting_since: float | None = None
    unheard_since: float | None = None  # mail left through SES, and no event has come since; None: one has
    holding: frozenset[str] = frozenset()  # keys of what was seen the last time
    sign_up_brake_at: float | None = None  # the limit of all sign-ups last refused one; None: never
    confirmations_sent: int = 0  # of sign-ups, in the last seven days,
    confirmations_bounced: int = 0  # and of these
    notion: Sequence[NotionTrouble] = ()  # those that last


@dataclass(frozen=True, slots=True)
class Facts:
    """All that alerts are decided on."""

    signs: Signs
    mailouts: Sequence[Mailout] = ()  # those that need a person
    scope: str = ""  # whose quota it is
    quota_left: int | None = None  # the effective one; None: no limit
    expects_events: bool = False  # SES, with a configuration set
    single_mails: SingleMailsWaiting | None = None
    recent: Sequence[Mailout] = ()  # under way, waiting, and the last that were sent
    max_bounce_rate: float = 1.0
    stuck: Sequence[Mailout] = ()  # those that should go out and do not move


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Something that a person should know. The same key is the same thing, for as long as it lasts."""

    key: str
    kind: AlertKind
    subject: str
    text: str
    about: str  # the event's resource: `mailout.<id>`, `quota.<account>`, or its kind
    name: str  # the same for people
    mailout: str | None = None  # its id
    reason: str | None = None  # why a mailout waits
    grace: float = 0.0  # it may pass by itself: sent once it has lasted so many seconds
    remind: bool = True  # sent again each day, for a week


@dataclass(frozen=True, slots=True)
class KnownAlert:
    """Something that lasts, and which alerts of it were sent."""

    key: str
    since: float
    tries: int = 0  # to send it, ever
    failed: int = 0  # since it was last sent
    tried_at: float | None = None
    told_at: float | None = None


class AlertStore(SingleMails, Outbox, Queue, Protocol):
    """What alerts are decided from, and which were sent: neither a second worker nor the next minute repeats
    one."""

    def alerts_hold(self, keys: Sequence[str], seen_at: float) -> Sequence[KnownAlert]:
        """These hold, and no others, as was seen then; what is known of each.

        Whoever looked earlier and comes late neither ends nor revives what another has seen since.
        """

    def claim_alert(self, known: KnownAlert) -> bool:
        """Whether it is ours to send: nobody has tried since. Until it is sent, the try has failed."""

    def alert_sent(self, key: str) -> None: ...
