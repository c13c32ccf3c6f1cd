"""What sending needs of the world: time, a transport, a journal on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from mailout.content.model import Content
from mailout.delivery.protocol import Attempt, Outcome


class Clock(Protocol):
    """Seconds since the epoch, a clock that never goes back, and a way to wait."""

    def now(self) -> float: ...
    def monotonic(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Mail:
    """One message, ready to be spliced together and handed over."""

    attempt: Attempt
    campaign_id: str | None
    to: str
    from_email: str
    from_name: str
    reply_to: str | None
    content: Content
    values: Mapping[str, str]  # fills the content's marks
    unsubscribe_url: str | None  # None: a transactional mail


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a provider still allows."""

    available: int | None  # messages; None: no limit
    max_rate: float | None  # messages a second; None: no limit
    refused: Outcome | None = None  # nothing may leave, and why
    most: int | None = None  # messages in 24 hours, of which `available` are left


REHEARSING = "folder"
"""The name of the transport by which nothing reaches anybody: what it sends is a rehearsal."""


class Transport(Protocol):
    """Where mail goes. One call, as many outcomes as mails, in order; it never raises for a mail's sake."""

    name: str
    scope: str  # whose pace and quota it shares: an account in a region
    max_batch: int  # how many mails one call may carry

    def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]: ...
    def allowance(self) -> Allowance | None:
        """Asked of the provider; None: there is none to ask. MailoutError if it does not answer."""
        ...

    def close(self) -> None: ...


class Journal(Protocol):
    """What one session does, written on this machine as it happens: it outlives the process."""

    def call(self, attempts: Sequence[Attempt]) -> None:
        """Before a transport call. HomeUnwritable: it is not written, and must not be made."""
        ...

    def answered(self, accepted: Mapping[Attempt, str], void: Sequence[Attempt]) -> None:
        """After it: these were accepted (with SES's id), those surely not. The others are in doubt.

        Never raises: the next step records them anyway.
        """
        ...

    def close(self, last_step: int) -> None:
        """Everything in it is recorded in the store."""
        ...

    def leave(self) -> None:
        """Nothing more is written; whoever begins next learns from it, as if this process had died."""
        ...


@dataclass(frozen=True, slots=True)
class DeadJournal:
    """The journal of a session whose process is gone."""

    session: str
    called: frozenset[Attempt] = frozenset()
    accepted: Mapping[Attempt, str] = field(default_factory=dict)
    void: frozenset[Attempt] = frozenset()
    closed_at_step: int | None = None  # it ended properly
    incomplete: str | None = None  # why lines may be missing from it: then only `accepted` counts


class Journals(Protocol):
    """The journals on this machine for one store."""

    def open(self, session: str) -> Journal: ...
    def dead(self) -> AbstractContextManager[Sequence[DeadJournal]]:
        """Those nobody writes any more, ours alone while we look at them."""
        ...

    def forget(self, session: str, last_step: int) -> None:
        """What it knew is in the store now."""
        ...
