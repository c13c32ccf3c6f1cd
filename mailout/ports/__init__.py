"""What the core needs of the world. Adapters fulfil these; `wiring` chooses them; tests loop over them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from mailout.doctor import Check
from mailout.ports.outbox import Doubt, Outbox, Queue, Recipient
from mailout.ports.people import Feedback, ImportCounts, SubscriberRow, Subscribers
from mailout.ports.sending import (
    REHEARSING,
    Allowance,
    Clock,
    DeadJournal,
    Journal,
    Journals,
    Mail,
    Transport,
)
from mailout.ports.upkeep import (
    Alerts,
    Archives,
    Counts,
    DueReports,
    ErrorRecord,
    PageReporter,
    Records,
    Requests,
)


class Store(
    Outbox, Queue, Subscribers, Records, DueReports, Feedback, Requests, Alerts, Counts, Archives, Protocol
):
    """Where everything is kept. Every method is one transaction; every time is the store's."""

    name: str

    def check(self) -> None:
        """Reachable, the right key, the right schema: else one clear error."""
        ...

    def schema_version(self) -> int: ...
    def examine(self) -> Iterator[Check]:
        """What only this store can tell `doctor`."""
        ...

    def close(self) -> None: ...


__all__ = [
    "REHEARSING",
    "Alerts",
    "Allowance",
    "Archives",
    "Clock",
    "Counts",
    "DeadJournal",
    "Doubt",
    "DueReports",
    "ErrorRecord",
    "Feedback",
    "ImportCounts",
    "Journal",
    "Journals",
    "Mail",
    "Outbox",
    "PageReporter",
    "Queue",
    "Recipient",
    "Records",
    "Requests",
    "Store",
    "SubscriberRow",
    "Subscribers",
    "Transport",
]
