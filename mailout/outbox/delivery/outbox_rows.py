"""What is read of the outbox: messages, what happened to them, who sends them, and what limits count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypedDict, TypeVar

from mailout.base.errors import NotFound
from mailout.base.select import SELECT_LIMIT, Reads, View, among, every, first
from mailout.outbox.delivery.port import (
    REHEARSING,
    Message,
    MessageEvent,
    MessageOutcome,
    SenderSession,
    SingleMessage,
)
from mailout.outbox.delivery.protocol import Attempt
from mailout.outbox.delivery.states import WAITING, State

MESSAGES_A_PAGE = 1000
FEW = frozenset({State.FAILED, State.VALIDATION_FAILED, State.UNKNOWN})
"""The states of `read_failed_messages`, which has an index of its own."""


class OpenAttempt(TypedDict):
    seq: int
    id: str
    epoch: int


class Used(TypedDict):
    """How many attempts were begun in one minute, hour or day."""

    scope: str
    kind: str
    key: str
    n: int


class Quota(TypedDict):
    """What a provider allows."""

    most: int | None  # in 24 hours; None: no limit, or never asked
    available: int | None  # what it had when it was asked, less what was begun here since; None: no limit


class AccountPace(TypedDict):
    """The pacer of one account."""

    next_at: float
    factor: float
    factor_at: float
    first_day: str | None  # the key of the day on which its first message was sent


MESSAGES = View("read_messages", Message, ("seq",))
OUTCOMES = View("read_messages", MessageOutcome, ("seq",))
FAILED_MESSAGES = View("read_failed_messages", Message, ("seq",))
FAILED_OUTCOMES = View("read_failed_messages", MessageOutcome, ("seq",))
SINGLE_MAILS = View("read_single_mails", SingleMessage, ("seq",))
MESSAGE_EVENTS = View("read_message_events", MessageEvent, ("message_id", "place", "step"))
SESSIONS = View("read_sessions", SenderSession, ("id",))
OPEN_ATTEMPTS = View("read_open_attempts", OpenAttempt, ("seq",))
USAGE = View("read_usage", Used, ("scope", "kind", "key"))
QUOTAS = View("read_quotas", Quota, ("scope",))
PACE = View("read_pace", AccountPace, ("scope",))

MessageRow = TypeVar("MessageRow", Message, MessageOutcome)


def message(store: Reads, id: str) -> Message:
    found = first(store, MESSAGES, {"id": id})
    if found is None:
        raise NotFound(
            f"There is no message {id}.", remedy="With its mailout, its recipient's address is enough."
        )
    return found


def message_events(store: Reads, id: str) -> Sequence[MessageEvent]:
    return store.select(MESSAGE_EVENTS, {"message_id": id}, order=["place", "created_at", "step"])


def messages(
    store: Reads, mailout_id: str, *, after: int = 0, limit: int = 1000, states: Sequence[State] = ()
) -> Sequence[Message]:
    """By `seq`."""
    few = states and FEW.issuperset(states)
    return list(_of_mailout(store, FAILED_MESSAGES if few else MESSAGES, mailout_id, states, after, limit))


def message_pages(store: Reads, mailout_id: str) -> Iterator[Sequence[Message]]:
    """All messages of a mailout by `seq`, a page at a time."""
    after = 0
    while page := messages(store, mailout_id, after=after, limit=MESSAGES_A_PAGE):
        yield page
        after = page[-1]["seq"]


def outcomes(store: Reads, mailout_id: str, states: Sequence[State] = ()) -> Iterator[MessageOutcome]:
    """Of all messages of a mailout (in these states) by `seq`."""
    few = states and FEW.issuperset(states)
    return _of_mailout(store, FAILED_OUTCOMES if few else OUTCOMES, mailout_id, states)


def _of_mailout(
    store: Reads,
    view: View[MessageRow],
    mailout_id: str,
    states: Sequence[State],
    after: int = 0,
    limit: int | None = None,
) -> Iterator[MessageRow]:
    filters = {"campaign_id": mailout_id} | ({"state in": states} if states else {})
    return every(store, view, filters, after=[after], limit=limit)


def single_mail(store: Reads, company: str, id: str) -> SingleMessage | None:
    """A company's own message with its subject; None: there is none, or it is another's."""
    return first(store, SINGLE_MAILS, {"id": id, "company_id": company})


SINGLE_MAIL_STATES: Mapping[str, Sequence[State]] = {
    "failed": (State.FAILED, State.VALIDATION_FAILED),
    "unknown": (State.UNKNOWN,),
    "pending": WAITING,
}
"""What a person asks for, and the states that it means."""


def single_mails(
    store: Reads, states: Sequence[State], company: str | None = None, limit: int = SELECT_LIMIT
) -> Sequence[SingleMessage]:
    """The latest first."""
    filters = {"state in": states} | ({"company_id": company} if company else {})
    return store.select(SINGLE_MAILS, filters, order=["-seq"], limit=limit)


def find_messages(store: Reads, id: str) -> Sequence[str]:
    """The messages with this id, from this request, or with this id at SES."""
    found = [store.select(MESSAGES, {column: id}) for column in ("id", "request_id", "ses_message_id")]
    by_seq = {row["seq"]: row["id"] for rows in found for row in rows}
    return [by_seq[seq] for seq in sorted(by_seq)]


def epochs(store: Reads, ids: Sequence[str]) -> Mapping[str, int]:
    return {row["id"]: row["epoch"] for row in among(store, MESSAGES, "id", ids)}


def open_attempts(store: Reads, session: str) -> Sequence[Attempt]:
    """Attempts of a dead session whose end its journal may know."""
    return [Attempt(row["id"], row["epoch"]) for row in every(store, OPEN_ATTEMPTS, {"session_id": session})]


def sender_session(store: Reads, id: str) -> SenderSession | None:
    """None: the store has never heard of it."""
    return first(store, SESSIONS, {"id": id})


def has_sent_really(store: Reads) -> bool:
    """Whether somebody has opened a session that was no rehearsal."""
    return bool(store.select(SESSIONS, {"transport !=": REHEARSING}, limit=1))


def living_senders(store: Reads) -> int:
    alive = {"closed_at": None, "lease_until >": store.now()}
    return len(store.select(SESSIONS, alive, order=["lease_until"]))


def usage(store: Reads, scope: str, kind: str, key: str) -> int:
    used = first(store, USAGE, {"scope": scope, "kind": kind, "key": key})
    return used["n"] if used else 0


def begun_since(store: Reads, moment: float, *, rehearsal: bool = False) -> Sequence[tuple[float, int]]:
    """Minutes (their beginnings) in which attempts were begun, and how many: what frees a quota.

    Of real mail, or of rehearsals, which use none of it.
    """
    scope = "rehearsal" if rehearsal else "all"
    filters = {"scope": scope, "kind": "minute", "key >=": minute_key(moment), "n >": 0}
    return [(60.0 * int(row["key"]), row["n"]) for row in every(store, USAGE, filters)]


def minute_key(moment: float) -> str:
    return f"{int(moment // 60):010d}"


def quota(store: Reads, scope: str) -> int | None:
    """The effective quota: what the provider had available, less what was begun here since."""
    known = first(store, QUOTAS, {"scope": scope})
    return known["available"] if known else None


def first_day(store: Reads, scope: str) -> str | None:
    """The key of the day on which the first message of an account was sent; None: none was."""
    pace = first(store, PACE, {"scope": scope})
    return pace["first_day"] if pace else None
