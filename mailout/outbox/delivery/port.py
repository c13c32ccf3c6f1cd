"""What delivery needs: the outbox in the store, a transport, a journal on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict

from mailout.base.select import Reads
from mailout.letters.content.model import Content
from mailout.outbox.delivery.protocol import Attempt, Outcome, Step, StepReply
from mailout.outbox.delivery.single_mails import CANCELLED
from mailout.outbox.delivery.states import State


@dataclass(frozen=True, slots=True)
class Mail:
    """One message, ready to be spliced together and handed over."""

    attempt: Attempt
    mailout_id: str | None
    to: str
    from_email: str
    from_name: str
    reply_to: str | None
    content: Content
    values: Mapping[str, str]  # fills the content's marks
    unsubscribe_url: str | None  # None: a transactional mail
    unsubscribe_mailbox: str | None = None  # where a mail also takes one off the list
    list_id: str | None = None  # `weekly.example.org`, by which mail programs sort
    list_name: str = ""  # the same for people
    one_click: bool = True  # RFC 8058: the link is ours and understands a POST
    tags: Mapping[str, str] = field(default_factory=dict)  # besides our own
    headers: Mapping[str, str] = field(default_factory=dict)  # its sender's own


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a provider still allows."""

    available: int | None  # messages; None: no limit
    max_rate: float | None  # messages a second; None: no limit
    refused: Outcome | None = None  # nothing may be sent, and why
    most: int | None = None  # messages in 24 hours, of which `available` remain


QUOTA_OVERLAP_SECONDS = 300.0
"""Attempts begun so long before the provider was asked may be missing from its answer: count them too."""
REHEARSING = "folder"
"""The name of the transport by which nothing reaches anybody: what it sends is a rehearsal."""


@dataclass(frozen=True, slots=True)
class DeadJournal:
    """The journal of a session whose process has ended."""

    session: str
    called: frozenset[Attempt] = frozenset()
    accepted: Mapping[Attempt, str] = field(default_factory=dict)
    void: frozenset[Attempt] = frozenset()
    closed_at_step: int | None = None  # it ended properly, and the store had answered this step
    incomplete: str | None = None  # why lines may be missing from it: then only `accepted` counts
    place: str = ""  # where a person finds it


class Message(TypedDict):
    """One row of the outbox."""

    seq: int
    id: str
    campaign_id: str | None
    company_id: str
    request_id: str | None
    recipient_id: str | None
    email: str
    from_name: str | None
    content_id: str | None  # None: the mailout's own
    variables: Mapping[str, str] | None
    state: str
    attempts: int
    epoch: int
    session_id: str | None
    next_attempt_at: float | None
    ses_message_id: str | None
    error_code: str | None
    error_category: str | None
    error_message: str | None
    original_code: str | None
    dedupe_key: str | None
    created_at: float
    attempt_at: float | None
    sent_at: float | None
    failed_at: float | None
    unknown_at: float | None
    duration_ms: int | None
    charged_hour: str | None
    charged_day: str | None
    history: Sequence[Mapping[str, Any]] | None  # what went differently
    category: str | None
    reply_to: str | None
    headers: Mapping[str, str] | None
    fingerprint: str | None
    is_rehearsal: bool


class SingleMessage(Message):
    """A message without a mailout."""

    subject: str | None


class MessageOutcome(TypedDict):
    """As much of a message as a report tells."""

    seq: int
    id: str
    email: str
    state: str
    attempts: int
    error_code: str | None
    error_message: str | None
    ses_message_id: str | None
    sent_at: float | None
    failed_at: float | None


class MessageEvent(TypedDict):
    """One transition of a message."""

    type: str
    created_at: str  # ISO 8601
    metadata: Mapping[str, Any]


class SenderSession(TypedDict):
    """A sender, as the store knows it."""

    id: str
    transport: str
    step_no: int  # the last step it made
    opened_at: float
    is_archived: bool  # what it sent is in an archive: the outbox no longer knows it, and need not


class Outbox(Reads, Protocol):
    """Messages and the sessions that send them."""

    def open_session(self, mailout_id: str | None, *, worker: str, transport: str, lease: float) -> str: ...
    def step(self, step: Step) -> StepReply: ...
    def stop_machine(self, machine: str) -> int:
        """Ask the living sessions of one machine's workers (`machine-<pid>`) to end; how many were asked."""

    def reap(self, grace: float) -> int:
        """Close sessions whose lease ran out `grace` ago; their attempts become UNKNOWN. How many."""

    def settle(
        self, mailout_id: str | None, to: State, *, wait: float, ids: Sequence[str] | None = None
    ) -> int:
        """What a person decided about UNKNOWN messages (all, or these): SENT, FAILED or PENDING.

        Without a mailout: on these single mails.
        """

    def retry_failed(self, mailout_id: str | None, *, ids: Sequence[str] | None = None) -> int:
        """FAILED messages (all, or these) wait again, with all their attempts before them. How many.

        Without a mailout: these single mails.
        """

    def cancel_single_mails(self, ids: Sequence[str], why: str = CANCELLED) -> int:
        """Those of them that wait become SUPPRESSED. How many."""

    def has_single_mails(self, session: str) -> bool:
        """Whether a step of this idle session would have something to do: a mail is due, or it must stop."""

    def set_quota(
        self, scope: str, available: int | None, asked_at: float, *, most: int | None = None
    ) -> None:
        """What the provider had available when it was asked, of how many; None: unlimited."""


class Transport(Protocol):
    """Where mail goes. One call, as many outcomes as mails, in order; it never raises for a mail's sake."""

    name: str
    scope: str  # whose pace and quota it shares: an account in a region
    max_batch: int  # how many mails one call may carry

    def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]: ...
    def allowance(self) -> Allowance | None:
        """Asked of the provider; None: there is none to ask. MailoutError if it does not answer."""

    def close(self) -> None: ...


class Journal(Protocol):
    """What one session does, written on this machine as it happens: it outlives the process."""

    def call(self, attempts: Sequence[Attempt]) -> None:
        """Before a transport call. HomeUnwritable: it is not written, and must not be made."""

    def answered(self, accepted: Mapping[Attempt, str], void: Sequence[Attempt]) -> None:
        """After it: these were accepted (with SES's id), those surely not. The others are in doubt.

        Never raises: the next step records them anyway.
        """

    def close(self, answered_step: int) -> None:
        """Everything in it is recorded in the store, which surely has had this step."""

    def abandon(self) -> None:
        """Nothing more is written; the next sender learns from it, as if this process had died."""


class Journals(Protocol):
    """The journals on this machine for one store."""

    def open(self, session: str) -> Journal: ...
    def dead(self) -> AbstractContextManager[Sequence[DeadJournal]]:
        """Those nobody writes any more, ours alone while we look at them."""

    def look(self) -> Sequence[DeadJournal]:
        """All of them, also those of the living and those that somebody else looks at."""

    def forget(self, session: str, answered_step: int) -> None:
        """What it knew is in the store now."""
