"""A mail without a mailout: what it is, what became of handing it in, and what the store does with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from mailout.base.select import Reads
from mailout.letters.content.model import Content
from mailout.outbox.delivery.states import State


class Category(StrEnum):
    """Why somebody gets it."""

    TRANSACTIONAL = "transactional"  # a receipt, a password link: also to who unsubscribed
    MARKETING = "marketing"  # with an unsubscribe link, and not to people who unsubscribed
    CONFIRMATION = "confirmation"  # of a sign-up: also to the unsubscribed or bounced, not after a complaint


DEFAULT_COMPANY = "default"
"""The company of mails that no company handed in."""
OURS = "mailout"
"""The company of the mails that mailout itself writes, to its administrator: they are sent also while
everything is paused. No other company may have this name."""


CANCELLED = "cancelled by a person"
"""Why a single mail that somebody took back was not sent."""


SIGNED_LINK = "signed_link"
"""The mark in a content where its secret link is shown, and the variable of the message that describes it."""


@dataclass(frozen=True, slots=True)
class SignedLink:
    """A secret link, e.g. to sign in. The store has what it says, never its signature: it is signed while the
    mail is sent. So no page, preview, export, log or backup can show it."""

    purpose: str  # of `SignedLinks`
    path: str  # below PUBLIC_URL; the token follows as `?token=`
    payload: Mapping[str, Any]

    @classmethod
    def read(cls, written: str) -> SignedLink:
        return cls(**json.loads(written))

    def written(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleMail:
    """One message, ready for the outbox."""

    id: str  # follows from company and idempotency key; without a key it is random
    company_id: str
    request_id: str | None
    email: str  # normalised
    content: Content
    category: Category = Category.TRANSACTIONAL
    from_name: str | None = None
    reply_to: str | None = None
    headers: Mapping[str, str] | None = None
    recipient_id: str | None = None
    external_id: str | None = None  # the company's own name for the recipient, who is made if new
    recipient_name: str | None = None
    idempotency_key: str | None = None
    fingerprint: str | None = None  # of all that was handed in: the same key must mean the same mail
    send_at: float | None = None  # not before
    is_rehearsal: bool = False  # goes to a folder, and never to people
    link: SignedLink | None = None  # where the content has the mark `SIGNED_LINK`
    list_key: str | None = None  # only to who is on this list when it leaves, with a link to leave it by
    values: Mapping[str, str] = field(default_factory=dict)  # by mark of the content

    @property
    def variables(self) -> Mapping[str, str] | None:
        link = {} if self.link is None else {SIGNED_LINK: self.link.written()}
        return {**self.values, **link} or None


HOLD_SWITCH = "single_mails_held"
"""Among the store's switches; of rehearsals: with `REHEARSED` after it."""


class Verdict(StrEnum):
    """What became of handing a mail in."""

    ACCEPTED = "accepted"
    REPEATED = "repeated"  # the same key and the same mail: it is in the outbox already
    CONFLICT = "conflict"  # the same key, and another mail
    NO_RECIPIENT = "no_recipient"  # not there, deleted, another company's, or with another address


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The answer for one mail."""

    verdict: Verdict
    id: str
    state: State = State.PENDING
    request_id: str | None = None  # of the request that handed it in first


UNSERVED_SECONDS = 300.0
"""A run that is asked for starts within a minute, also on a busy machine."""
NO_SENDER = "no_sender"
UNSERVED = (
    "Nothing is sending single mails. Start `mailout up`, or resume if everything is paused; if it runs,"
    " `mailout doctor` says why."
)


@dataclass(frozen=True, slots=True)
class SingleMailsHeld:
    """Why they are not sent although somebody tries."""

    since: float
    code: str  # the provider's answer in our words, or the limit that is spent
    why: str  # for people, with what to do
    needs_person: bool  # it does not pass by itself
    notifications: bool = False  # some wait with their producer, and not in the outbox


@dataclass(frozen=True, slots=True)
class SingleMailsWaiting:
    """Whether somebody has to be started for them, and what holds them up."""

    now: float
    due_since: float | None  # the one that has waited longest
    is_served: bool  # a living session sends them
    has_tokens: bool  # so more may come at any moment
    due: int = 0  # how many wait that may be sent now, without alerts, which are said elsewhere, too
    held: SingleMailsHeld | None = None  # the last run could not send them; None: it could

    @property
    def hold(self) -> SingleMailsHeld | None:
        """What keeps somebody waiting now: the reason of the last run, or that there is none."""
        if self.held is not None:
            return self.held if self.due or self.held.notifications else None
        since = self.due_since
        if not self.due or self.is_served or since is None or self.now - since < UNSERVED_SECONDS:
            return None
        return SingleMailsHeld(since, NO_SENDER, UNSERVED, needs_person=True)


class SingleMails(Reads, Protocol):
    """Mails without a mailout, in the outbox."""

    def accept_single_mails(self, mails: Sequence[SingleMail]) -> Sequence[Acceptance]:
        """All in one commit, each with its own verdict, in order."""

    def single_mails_waiting(self, *, rehearsal: bool) -> SingleMailsWaiting: ...

    def hold_single_mails(self, held: SingleMailsHeld | None, *, rehearsal: bool) -> None:
        """They cannot be sent, and why; None: they can. While it lasts, the first `since` stays."""
