"""What the queue needs of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from mailout.base.errors import NotFound
from mailout.base.select import Reads
from mailout.letters.content.refs import page_id_of
from mailout.outbox.delivery.port import Outbox
from mailout.outbox.delivery.single_mails import SingleMails
from mailout.outbox.queue.mailout import DeferReason, Mailout, NewMailout


@dataclass(frozen=True, slots=True)
class Recipient:
    """One member of an audience that is handed in instead of read from `subscribers`."""

    email: str
    from_name: str | None = None
    content_hash: str | None = None  # None: the mailout's own
    variables: Mapping[str, str] = field(default_factory=dict)
    recipient_id: str | None = None


@dataclass(frozen=True, slots=True)
class Freezing:
    """An audience that is being written."""

    up_to: str  # the last address that is in
    began: float  # who came later is not meant


class RequestKind(StrEnum):
    """What exactly is asked for."""

    AS_WRITTEN = "as_written"  # a test or not, as the page or file says
    TEST = "test"  # to TEST_EMAILS alone
    REAL = "real"
    IF_READY = "if_ready"  # only if the page is Ready and its time has come
    ARTICLE = "article"  # a batch of an article; `ref` holds what was asked, as JSON


@dataclass(frozen=True, slots=True)
class Request:
    """The same one, asked for again within a minute, is one."""

    ref: str
    how: RequestKind = RequestKind.AS_WRITTEN
    not_before: float | None = field(default=None, compare=False)  # a person chose when; None: at once

    @classmethod
    def of(
        cls,
        ref: str,
        test: bool | None = None,
        if_ready: bool = False,
        not_before: float | None = None,
    ) -> Request:
        """A page has one name here, whether its id or its address was given."""
        ref = page_id_of(ref) or ref
        if if_ready:
            return cls(ref, RequestKind.IF_READY)
        if test is None:
            return cls(ref)
        return cls(ref, RequestKind.TEST if test else RequestKind.REAL, not_before)

    @property
    def test(self) -> bool | None:
        return {RequestKind.TEST: True, RequestKind.REAL: False}.get(self.how)

    @property
    def if_ready(self) -> bool:
        return self.how is RequestKind.IF_READY


class Queue(Reads, Protocol):
    """Mailouts: `campaign_queue`, the single source of truth."""

    def enqueue(self, new: NewMailout, *, requested: str | None = None) -> Mailout:
        """Write it down, or find it: the same id is the same mailout.

        `requested`: what a person asked for, to be sent for real. NotFound: it was taken back meanwhile, or
        put off.
        """

    def mailout(self, id: str) -> Mailout: ...
    def start(self, id: str, worker: str) -> Mailout:
        """Take it up, if it is due: PROCESSING. One that is not due, or done, comes back as it is."""

    def defer(
        self, id: str, reason: DeferReason, until: float | None, note: str | None = None
    ) -> Mailout: ...
    def resume(self, id: str) -> Mailout:
        """It waits for nothing but its turn; what held it for a person is acknowledged."""

    def release(self, id: str) -> Mailout:
        """Whoever sent it has stopped: PENDING again, unless another one is sending it."""

    def cancel(self, id: str) -> Mailout: ...
    def discard_unbegun(self, id: str) -> bool:
        """Let go of a mailout that was cancelled before its first message, so that it may be sent after all.
        False: something of it was begun, or it is not cancelled."""

    def complete(self, id: str) -> Mailout:
        """COMPLETED, if nothing is pending or in flight; else it comes back as it is."""

    def pause_all(self, paused: bool) -> None: ...
    def set_content(self, id: str, content_hash: str, subject: str, *, replace: bool = False) -> Mailout:
        """Freeze what is sent. The first one stays: editing the page later changes nothing.

        `replace`: another one, as long as it waits and no message of it has been tried. Then it is not frozen
        any more: another content may need to know something else of its readers.
        """

    def set_public(self, id: str, public: bool) -> Mailout:
        """Into the archive on the web, or out of it. What is so already stays, with its time."""

    def freeze_subscribers(
        self, id: str, *, chunk: int = 20_000, attributes: Sequence[str] = ()
    ) -> int | None:
        """Write the next part of the audience; how many, or None once all are in.

        `attributes`: those of the subscribers that the content needs; they go along as variables.
        """

    def begin_freezing(self, id: str) -> Freezing | None:
        """How far the writing of an audience that is handed in by parts has got; None: it is over."""

    def freeze_recipients(self, id: str, recipients: Sequence[Recipient], up_to: str | None = None) -> int:
        """Write an audience that is handed in, whole or by parts in order: `up_to` is the address that a part
        goes up to, None for the last. A replay adds nobody twice, and nothing may leave before the last part
        is in. How many were added."""


def mailout_or_none(queue: Queue, id: str) -> Mailout | None:
    """None: there is none."""
    try:
        return queue.mailout(id)
    except NotFound:
        return None


class Requests(Reads, Protocol):
    """What was asked for from outside: written down first, so that a lost event costs no request."""

    def ask(self, request: Request, *, repeat: float) -> bool:
        """Write it down; False: it was asked for less than `repeat` seconds ago. Another `not_before` is
        another time for the same one. What is sent once however often it is asked for (IF_READY, ARTICLE) is
        taken again as soon as it was answered."""

    def answered(self, request: Request) -> bool:
        """It is in the queue, was refused for good, or was taken back. False: it did not wait any more."""


class QueueStore(Outbox, Queue, Requests, SingleMails, Protocol):
    """What decisions about the queue read and change."""
