"""What the audience needs of the store: subscribers and their lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, Protocol, TypedDict

from mailout.base.select import Writes
from mailout.letters.audience.segment_tree import Tree

PRIORITY: Mapping[str, int] = {"active": 1, "unsubscribed": 2, "bounced": 3}
"""The status of a subscriber: equal or higher wins."""


def stronger(current: str, incoming: str) -> str:
    """Which one stays. Any order of the same events ends in the same state. Others' words are not active."""
    return incoming if PRIORITY[incoming] >= PRIORITY.get(current, PRIORITY["unsubscribed"]) else current


@dataclass(frozen=True, slots=True)
class SubscriberRow:
    """One subscriber as an import writes it: checked and normalised."""

    email: str  # as written, trimmed
    email_norm: str  # lower-case, punycode: the key
    status: str = "active"
    from_name: str | None = None
    bounce_type: str | None = None
    bounce_subtype: str | None = None
    ocd_ids: Sequence[str] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    lists: Sequence[str] = ()
    left_lists: Sequence[str] = ()  # those that they are not on, by their own wish
    complained: bool = False


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """What an import changed."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    kept_status: int = 0  # the file said less than the store knew
    stayed_off: int = 0  # people who are off a list that the file would put them on
    forgotten: int = 0  # erased at their own request: an import does not bring them back

    def __add__(self, more: ImportCounts) -> ImportCounts:
        return ImportCounts(*(a + b for a, b in zip(astuple(self), astuple(more), strict=True)))


@dataclass(frozen=True, slots=True)
class ImportRecord:
    """An import and what was decided for it: on whose word people became active."""

    id: str
    by: str
    file: str
    decisions: Mapping[str, Any]
    counts: Mapping[str, int]  # of the file, and what it changed in the store
    at: float = 0.0
    undone_at: float | None = None


@dataclass(frozen=True, slots=True)
class Undone:
    """What was taken back of an import."""

    people: int
    lists: int  # places of known people on a list
    kept: int  # people who get no mail, have spoken for themselves since, or came again with another import


@dataclass(frozen=True, slots=True)
class Lacking:
    """How many of an audience have no value for an attribute, and who, for example."""

    attribute: str
    people: int
    examples: Sequence[str]  # the first three addresses


@dataclass(frozen=True, slots=True)
class Choice:
    """What a reader chose on the page of their preferences. What they unsubscribe from is no part of it."""

    joins: Mapping[str, str] = field(default_factory=dict)  # list → the words they agreed to
    source: str = ""  # the page where
    snooze_seconds: float | None = None  # None: as it was; 0: the pause ends
    language: str | None = None  # None: as it was; "": as their browser wishes


class Subscription(TypedDict):
    list_key: str
    unsubscribed_at: float | None
    joined_at: float | None  # by their own act; None: by an import


class SubscriberColumns(TypedDict):
    """What the store knows of one subscriber."""

    id: str
    email: str  # as written
    email_norm: str
    status: str
    bounce_type: str | None
    bounce_subtype: str | None
    status_updated_at: float | None
    from_name: str | None
    ocd_ids: Sequence[str]
    attributes: Mapping[str, Any]
    created_at: float
    left_at: float | None  # by themselves, having been active
    complained_at: float | None
    snoozed_until: float | None  # their own wish: no letters before


class Subscriber(SubscriberColumns):
    lists: Sequence[str]  # those they are on


class SubscriberDetails(SubscriberColumns):
    lists: Sequence[Subscription]  # also those they unsubscribed from


class Subscribers(Writes, Protocol):
    """The list, with a status that imports never lower."""

    def import_subscribers(
        self, rows: Sequence[SubscriberRow], *, own_sign_up: bool = False, import_id: str | None = None
    ) -> ImportCounts:
        """Who was forgotten, unsubscribed or left a list stays away, unless it is that person's own sign-up.
        `import_id` can be undone."""

    def undo_import(self, id: str) -> Undone:
        """Takes back whom and what it added. Refused once any of these people was mailed."""

    def edit_subscriber(self, email_norm: str, attributes: Mapping[str, Any]) -> bool:
        """These attributes and no others; False: there is no such subscriber."""

    def audience_size(
        self, list_key: str | None, segment: Tree | None = None, *, snoozed: bool = False
    ) -> int:
        """How many would get a mailout to this list, or (None) to everybody.

        `segment`: only these; without a list, also who is not on `general` and on a list that it asks for.
        `snoozed`: how many would not, because they asked for a pause.
        """

    def audience_sample(self, list_key: str | None, segment: Tree | None, limit: int) -> Sequence[str]:
        """The first addresses of those whom `audience_size` counts."""

    def lacking(self, attribute: str, list_key: str | None, segment: Tree | None = None) -> Lacking:
        """Of those whom `audience_size` counts, who has no value for it, or a blank one."""

    def normalise_addresses(self) -> int:
        """Bring into our form what others wrote straight into the table; how many can now be written to."""

    def choose(self, email_norm: str, choice: Choice) -> bool:
        """A reader's own act. False, and nothing changes: they are not active, so they get no letters."""

    def delete_segment(self, name: str) -> bool:
        """False: there is none, or a letter waits that has not taken its filter yet."""
