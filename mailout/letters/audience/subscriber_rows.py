"""What is read of subscribers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypedDict

from mailout.base.errors import NotFound
from mailout.base.select import SELECT_LIMIT, Reads, Table, View, every, first
from mailout.letters.audience.port import (
    PRIORITY,
    ImportRecord,
    Subscriber,
    SubscriberColumns,
    SubscriberDetails,
    Subscribers,
    Subscription,
)
from mailout.letters.audience.segment_tree import fold


class Counted(TypedDict):
    status: str
    people: int


class Unreachable(TypedDict):
    reason: str
    people: int


class Address(TypedDict):
    email_norm: str


class Left(TypedDict):
    email: str
    list_key: str


class DeskUnsubscribe(TypedDict):
    email: str
    list_key: str  # empty: from everything
    at: float


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
ADDRESSES = View("read_subscribers", Address, ("email_norm",))
SUBSCRIPTIONS = View("read_subscriptions", Subscription, ("email", "list_key"))
LEFT = View("read_subscriptions", Left, ("email", "list_key"))
CONSENTS = View("read_consents", Consent, ("email", "list_key", "at"))
COUNTS = View("read_subscriber_counts", Counted, ("status",))
IMPORTS = View("read_imports", ImportRecord, ("id",))
IMPORT_TABLE = Table(
    "imports",
    ImportRecord,
    ("id", "at", "by", "file", "decisions", "counts"),
    at="at",
    key=("id",),
    once=True,
)
BY_ATTRIBUTE = View("read_people_by_attribute", Subscriber, ("email_norm",))  # unique for one attribute
DESK_UNSUBSCRIBES = View("read_desk_unsubscribes", DeskUnsubscribe, ("email", "list_key"))
UNREACHABLE = View("read_unreachable", Unreachable, ("reason",))


def subscriber(store: Reads, email_norm: str) -> SubscriberDetails:
    found = first(store, COLUMNS, {"email_norm": email_norm})
    if found is None:
        raise NotFound(
            f"There is no subscriber {email_norm}.", remedy="`mailout subscribers export` shows everybody."
        )
    stands = found["status"] or "unknown"  # others may write into the same table
    return {**found, "status": stands, "lists": store.select(SUBSCRIPTIONS, {"email": email_norm})}


def name_of(person: SubscriberColumns) -> str:
    """Attributes need not be text: others may write into the same table."""
    known = person["attributes"]
    return str(
        known.get("name")
        or " ".join(str(known[key]) for key in ("first_name", "last_name") if known.get(key))
    )


def is_known(store: Reads, email_norm: str) -> bool:
    return first(store, COLUMNS, {"email_norm": email_norm}) is not None


def active_among(store: Reads, addresses: Sequence[str]) -> int:
    """How many of them get mail now."""
    parts = (addresses[at : at + SELECT_LIMIT] for at in range(0, len(addresses), SELECT_LIMIT))
    found = (store.select(ADDRESSES, {"email_norm in": part, "status": "active"}) for part in parts)
    return sum(map(len, found))


def joined_since(store: Reads, email_norm: str, moment: float) -> bool:
    found = first(store, COLUMNS, {"email_norm": email_norm})
    return found is not None and (found["created_at"] or 0.0) > moment


def consents(store: Reads, email_norm: str) -> Sequence[Consent]:
    """What they agreed to by confirming a sign-up or on their preferences, the first one first."""
    return list(every(store, CONSENTS, {"email": email_norm}, order=["at"]))


def subscribers(
    store: Reads, *, after: str = "", limit: int = 1000, **wanted: str | None
) -> Sequence[Subscriber]:
    """By `email_norm`, one page of those that are `Wanted`: ask again after the last one's."""
    return list(matching(store, Wanted(**wanted), after=after, limit=limit))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which people."""

    status: str | None = None
    search: str | None = None  # a part of the address or of the name, in any case
    attribute: str | None = None  # one that they have
    value: str | None = None  # of that attribute, in any case; None: any
    list_key: str | None = None  # a list that they are on


def matching(
    store: Reads, wanted: Wanted, *, after: str = "", limit: int | None = None
) -> Iterator[Subscriber]:
    """By `email_norm`, all of them or so many."""
    status, search, attribute, value = wanted.status, wanted.search, wanted.attribute, wanted.value
    view = SUBSCRIBERS if status in (None, "active") else INACTIVE
    filters: dict[str, object] = {"status": status} if status is not None else {}
    filters |= {"searched has": fold(search)} if search else {}
    filters |= {"on_lists has": f"\n{wanted.list_key}\n"} if wanted.list_key else {}
    if attribute:
        view = BY_ATTRIBUTE
        filters |= {"attribute": attribute} | ({"attribute_value": fold(value)} if value else {})
    return every(store, view, filters, after=[after], limit=limit)


def with_left_lists(store: Reads, people: Iterator[Subscriber]) -> Iterator[tuple[Subscriber, Sequence[str]]]:
    """With the lists that they unsubscribed from."""
    while page := list(islice(people, SELECT_LIMIT)):
        asked = {"email in": [one["email_norm"] for one in page], "unsubscribed_at >": 0.0}
        gone: dict[str, list[str]] = {one["email_norm"]: [] for one in page}
        for row in every(store, LEFT, asked):
            gone[row["email"]].append(row["list_key"])
        yield from ((one, gone[one["email_norm"]]) for one in page)


def unsubscribed_by_hand(store: Reads, email_norm: str) -> Mapping[str, float]:
    """When somebody at the dashboard unsubscribed them, by list; '' is everything."""
    return {row["list_key"]: row["at"] for row in store.select(DESK_UNSUBSCRIBES, {"email": email_norm})}


def subscriber_counts(store: Reads) -> Mapping[str, int]:
    counts = Counter(dict.fromkeys(PRIORITY, 0))
    for row in every(store, COUNTS):
        counts[row["status"] or "unknown"] += row["people"]
    return counts


def unknown_statuses(counts: Mapping[str, int]) -> Mapping[str, int]:
    """Others write into the same table: whose wish is not known gets no mail. Of none at all, `unknown`."""
    return {status: people for status, people in counts.items() if status not in PRIORITY}


def anybody_on(store: Subscribers, list_key: str) -> bool:
    """Whether a mailout to this list would reach anybody."""
    return store.audience_size(list_key) > 0


def unreachable(store: Reads) -> Mapping[str, int]:
    """How many active ones get no mail because of their address, by reason."""
    return {row["reason"]: row["people"] for row in every(store, UNREACHABLE)}


def imports(store: Reads, limit: int = 50) -> Sequence[ImportRecord]:
    """The newest first."""
    return store.select(IMPORTS, order=["-at"], limit=limit)
