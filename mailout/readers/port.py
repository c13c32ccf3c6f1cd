"""Sign-ups: what was asked, what became of it, their limits, and what they need of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from mailout.base.select import Reads
from mailout.outbox.delivery.single_mails import SingleMail

HOUR_SECONDS = 3600.0
DAY_SECONDS = 86_400.0
CONFIRM_SECONDS = 7 * DAY_SECONDS
"""For so long a confirmation's link works; then the row of one that nobody has confirmed is erased."""

WELCOME_SECONDS = CONFIRM_SECONDS
"""Who joined longer ago gets no welcome letter any more, e.g. when their list is given one later."""


class Asked(StrEnum):
    """What became of a post. Whoever posted is not told."""

    SENT = "sent"  # the confirmation is in the outbox
    BOT = "bot"  # a program filled the form in
    ALL = "all"  # too many in all,
    NETWORK = "network"  # from there,
    ADDRESS = "address"  # or to this address


@dataclass(frozen=True, slots=True)
class SignUpLimit:
    """At most so many confirmations within so many seconds."""

    of: Asked
    seconds: float
    most: int


LIMITS = (
    SignUpLimit(Asked.ALL, HOUR_SECONDS, 1000),
    SignUpLimit(Asked.NETWORK, HOUR_SECONDS, 30),
    SignUpLimit(Asked.ADDRESS, 600.0, 1),
    SignUpLimit(Asked.ADDRESS, DAY_SECONDS, 3),
)
"""In the order in which they are looked at: the first one that is spent decides. Only what was sent counts,
so that posts which are refused neither use a limit up nor leave a row."""


@dataclass(frozen=True, slots=True)
class SignUp:
    """Somebody, who may be anybody, wants this address to get these lists."""

    mail: SingleMail  # the confirmation
    network: str  # where it came from
    lists: Sequence[str]
    day: str  # as the dashboard counts days


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What the link of a confirmation says: the sign-up itself."""

    email: str  # normalised
    written: str  # as its owner wrote it
    lists: Sequence[str]
    wording: str  # what the reader agrees to
    page: str  # where it was asked for
    at: float  # and when
    day: str
    name: str = ""


class Confirmed(StrEnum):
    """What became of confirming it."""

    JOINED = "joined"
    KNOWN = "known"  # it was done before, and is still so
    OVER = "over"  # the reader has left, or had their data erased, since: this link does not undo that
    COMPLAINED = "complained"  # nobody is written to again who complained


@dataclass(frozen=True, slots=True)
class SignUpDay:
    """How many asked to join a list on one day, and how many of these confirmed it."""

    day: str
    list_key: str
    asked: int
    confirmed: int

    @property
    def open(self) -> int:
        return max(0, self.asked - self.confirmed)


@dataclass(frozen=True, slots=True)
class OwedWelcome:
    """Somebody joined a list that has a welcome letter."""

    email: str
    list_key: str
    joined_at: float
    welcome_ref: str
    attributes: Mapping[str, Any]
    own_from_name: str | None  # the reader's own
    from_name: str | None  # the list's
    reply_to: str | None


class SignUps(Reads, Protocol):
    """Strangers who want to join. Nothing of them is stored but the confirmation's row in the outbox."""

    def ask_sign_up(self, asked: SignUp) -> Asked:
        """One transaction, whatever the limits say: looks at them, and if none is spent puts the confirmation
        into the outbox. It never looks at who is subscribed: its time tells nothing of that."""

    def confirm_sign_up(self, confirmation: Confirmation) -> Confirmed:
        """Active, on the chosen lists alone if they were not active before, with a record of their consent.
        A link that was confirmed before changes nothing."""

    def erase_sign_ups(self, before: float, most: int) -> int:
        """The next rows of confirmations that were asked for before then and that nobody has confirmed; how
        many. Of who complained or bounced, a keyed hash stays. Of the confirmed ones, what their link said
        is erased."""
