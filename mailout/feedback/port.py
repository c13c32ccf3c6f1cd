"""What feedback needs of the store: the inbox of events and people who leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mailout.audience.port import Subscribers
from mailout.delivery.port import Outbox
from mailout.error_log import ErrorLog
from mailout.feedback.model import (
    Applied,
    Doubts,
    Drift,
    Forgotten,
    InboxCounts,
    Reading,
    Received,
    StatusChange,
    Waiting,
)


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

    def change_statuses(self, changes: Mapping[str, StatusChange]) -> int:
        """News of subscribers by normalised address; how many of them stand differently now."""
        ...

    def unsubscribe(self, email_norm: str, list_key: str | None, message_id: str | None = None) -> bool:
        """From one list, or (None) from everything. Who was not known is remembered as gone. Whether they may
        come back: a complaint or a bounce cannot be taken back.

        It counts for the mailout of the message whose link was followed; without one, for the last mailout
        that reached the address.
        """
        ...

    def mailed_since(self, email_norm: str, moment: float) -> bool:
        """Whether mail of a mailout has gone to this address since then; a rehearsal has not."""
        ...

    def resubscribe(self, email_norm: str, list_key: str | None) -> bool:
        """A person takes back their unsubscribe; False: it is not theirs to undo (a complaint, a bounce)."""
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


class FeedbackStore(Feedback, Subscribers, Outbox, ErrorLog, Protocol):
    """What feedback reads and changes."""
