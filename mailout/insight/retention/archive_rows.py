"""What archiving reads: mailouts that are over, and what belongs to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypedDict

from mailout.base.select import SELECT_LIMIT, Reads, View, every
from mailout.outbox.delivery.outbox_rows import SESSIONS
from mailout.outbox.feedback.feedback_rows import DELIVERY_EVENTS
from mailout.outbox.feedback.port import DeliveryEvent
from mailout.outbox.queue.mailout import Mailout, Status
from mailout.outbox.queue.port import Queue
from mailout.outbox.queue.queue_rows import MAILOUTS


class _Archive(TypedDict):
    id: str
    archived_at: float


ARCHIVES_TO_EMPTY = View("read_archives_to_empty", _Archive, ("id",))


def over_before(store: Reads, moment: float) -> Sequence[Mailout]:
    """Ended before then and not archived, the oldest first."""
    over = {"status in": [Status.COMPLETED, Status.CANCELLED], "archived_at": None, "completed_at <": moment}
    return list(every(store, MAILOUTS, over, order=["completed_at"]))


def transports(store: Reads, id: str) -> Mapping[str, str]:
    """What each of its sessions sent through."""
    return {row["id"]: row["transport"] for row in every(store, SESSIONS, {"campaign_id": id})}


def archives_to_empty(store: Queue) -> Sequence[Mailout]:
    """Archived mailouts with messages that are still in the store."""
    found = sorted(every(store, ARCHIVES_TO_EMPTY), key=lambda one: one["archived_at"])
    return [store.mailout(one["id"]) for one in found]


def events_of(store: Reads, message_ids: Sequence[str]) -> Iterator[DeliveryEvent]:
    for start in range(0, len(message_ids), SELECT_LIMIT):
        part = message_ids[start : start + SELECT_LIMIT]
        yield from every(store, DELIVERY_EVENTS, {"message_id in": part})
