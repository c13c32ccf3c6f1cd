"""What is read of subscribers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from mailout.base.errors import NotFound
from mailout.base.select import Reads, View, every, first
from mailout.letters.audience.port import (
    PRIORITY,
    ImportRecord,
    Subscriber,
    SubscriberColumns,
    SubscriberDetails,
    Subscribers,
    Subscription,
)


class Counted(TypedDict):
    status: str
    people: int


class Unreachable(TypedDict):
    reason: str
    people: int


class Consent(TypedDict):
    """Somebody agreed to get a list."""

    email: str
    list_key: str
    at: float
    wording: str  # what they agreed to
    source: str  # the page where


SUBSCRIBERS = View("read_subscribers", Subscriber, ("email_norm",))
INACTIVE = View("read_inactive_subscribers", Subscriber, ("email_norm",))
COLUMNS = View("read_subscribers", SubscriberColumns, ("email_norm",))
SUBSCRIPTIONS = View("read_subscriptions", Subscription, ("email", "list_key"))
CONSENTS = View("read_consents", Consent, ("email", "list_key", "at"))
COUNTS = View("read_subscriber_counts", Counted, ("status",))
IMPORTS = View("read_imports", ImportRecord, ("id",))
UNREACHABLE = View("read_unreachable", Unreachable, ("reason",))


def subscriber(store: Reads, email_norm: str) -> SubscriberDetails:
    found = first(store, COLUMNS, {"email_norm": email_norm})
    if found is None:
        raise NotFound(
            f"There is no subscriber {email_norm}.", remedy="`mailout subscribers export` shows everybody."
        )
    return {**found, "lists": store.select(SUBSCRIPTIONS, {"email": email_norm})}


def consents(store: Reads, email_norm: str) -> Sequence[Consent]:
    """What they agreed to by confirming a sign-up, the first one first."""
    return list(every(store, CONSENTS, {"email": email_norm}, order=["at"]))


def subscribers(
    store: Reads, *, after: str = "", limit: int = 1000, status: str | None = None, search: str | None = None
) -> Sequence[Subscriber]:
    """By `email_norm`, one page: ask again after the last one's.

    `search` is a part of the address or of the name, in any case.
    """
    view = SUBSCRIBERS if status in (None, "active") else INACTIVE
    filters = {"status": status} if status is not None else {}
    filters |= {"searched has": search.lower()} if search else {}
    return list(every(store, view, filters, after=[after], limit=limit))


def subscriber_counts(store: Reads) -> Mapping[str, int]:
    return dict.fromkeys(PRIORITY, 0) | {row["status"]: row["people"] for row in every(store, COUNTS)}


def anybody_on(store: Subscribers, list_key: str) -> bool:
    """Whether a mailout to this list would reach anybody."""
    return store.audience_size(list_key) > 0


def unreachable(store: Reads) -> Mapping[str, int]:
    """How many active ones get no mail because of their address, by reason."""
    return {row["reason"]: row["people"] for row in every(store, UNREACHABLE)}


def imports(store: Reads, limit: int = 50) -> Sequence[ImportRecord]:
    """The newest first."""
    return store.select(IMPORTS, order=["-at"], limit=limit)
