"""The people of the list, and what comes back from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mailout.feedback.model import (
    Applied,
    Doubts,
    Drift,
    Forgotten,
    Heard,
    InboxCounts,
    Left,
    Reading,
    Received,
    Waiting,
)


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


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """What an import changed."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    kept_status: int = 0  # the file said less than the store knew (invariant 6)
    forgotten: int = 0  # erased at their own request: an import does not bring them back


class Subscribers(Protocol):
    """The list, with a status that imports never lower."""

    def import_subscribers(self, rows: Sequence[SubscriberRow], *, own_sign_up: bool = False) -> ImportCounts:
        """Who was forgotten stays away, unless it is that person's own sign-up."""
        ...

    def subscriber(self, email_norm: str) -> Mapping[str, Any]: ...
    def subscribers(
        self, *, after: str = "", limit: int = 1000, status: str | None = None, search: str | None = None
    ) -> Sequence[Mapping[str, Any]]:
        """By `email_norm`, one page: ask again after the last one's.

        `search` is a part of the address or of the name, in any case.
        """
        ...

    def subscriber_counts(self) -> Mapping[str, int]: ...
    def anybody_on(self, list_key: str) -> bool:
        """Whether a mailout to this list would reach anybody."""
        ...

    def audience_size(self, list_key: str | None) -> int:
        """How many would get a mailout to this list, or (None) to everybody."""
        ...

    def normalise_addresses(self) -> int:
        """Bring into our form what others wrote straight into the table; how many can now be written to."""
        ...

    def left_out(self) -> Mapping[str, int]:
        """How many active ones get no mail because of their address, by reason."""
        ...

    def set_status(self, email_norm: str, status: str) -> None: ...


class Feedback(Protocol):
    """What comes back: the inbox of events, what they change, and people who leave."""

    def receive_events(self, received: Sequence[Received]) -> int:
        """Into the inbox, in one commit; how many were new. A known id changes nothing."""
        ...

    def waiting_events(self, limit: int) -> Sequence[Waiting]:
        """Those not applied yet, the oldest first."""
        ...

    def apply_events(self, readings: Sequence[Reading]) -> Applied:
        """One transaction. A row of the inbox that was applied before is passed over."""
        ...

    def inbox_counts(self) -> InboxCounts: ...
    def delivery_events(
        self, *, message_id: str | None = None, email: str | None = None, limit: int = 100
    ) -> Sequence[Mapping[str, Any]]:
        """Of one message or one address, the latest first."""
        ...

    def hear(self, news: Mapping[str, Heard]) -> int:
        """News of subscribers by normalised address; how many of them stand differently now."""
        ...

    def unsubscribe(self, email_norm: str, list_key: str | None, message_id: str | None = None) -> Left:
        """From one list, or (None) from everything. Who was not known is remembered as gone.

        It counts for the mailout of the message whose link was followed; without one, for the last mailout
        that reached the address.
        """
        ...

    def mailed_since(self, email_norm: str, moment: float) -> bool:
        """Whether mail of a mailout has gone to this address since then; a rehearsal has not."""
        ...

    def resubscribe(self, email_norm: str, list_key: str | None) -> bool:
        """A person takes his own unsubscribe back; False: it is not his to undo (a complaint, a bounce)."""
        ...

    def forget(self, email_norm: str, instead: str) -> Forgotten:
        """Erase a person: `instead` stands wherever the address stood. Counts stay.

        What stays is a keyed hash of the address, by which an import knows whom not to bring back.
        """
        ...

    def doubts_open(self) -> Doubts:
        """UNKNOWN messages of all mailouts, and since when the oldest is."""
        ...

    def usage_drift(self) -> Sequence[Drift]:
        """Counters that say less than the messages charged to them: there should be none."""
        ...
