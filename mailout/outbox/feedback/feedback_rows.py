"""What is read of feedback: the inbox, events, and what is in doubt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from mailout.base.ids import message_id as id_of_message
from mailout.base.select import Reads, View, among, every, first
from mailout.outbox.delivery.outbox_rows import MESSAGES, SINGLE_MAILS
from mailout.outbox.delivery.single_mails import Category
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback.port import DeliveryEvent, Doubts, Drift, EventType, WaitingEvent


class InboxWaiting(TypedDict):
    waiting: int
    oldest: float | None


class MailoutId(TypedDict):
    id: str


WAITING_EVENTS = View("read_waiting_events", WaitingEvent, ("id",))
INBOX = View("read_inbox", InboxWaiting, ("waiting",))
DELIVERY_EVENTS = View("read_delivery_events", DeliveryEvent, ("id",))
DOUBTS = View("read_doubts", Doubts, ("unknown",))
USAGE_DRIFT = View("read_usage_drift", Drift, ("scope", "kind", "key"))
MAILOUT_IDS = View("read_mailouts", MailoutId, ("id",))
SINGLE_MAILS_LOOKED_AT = 20
"""The latest to an address that were sent: their order is that in which they were handed in."""
MAYBE_READ = (State.SENT, State.UNKNOWN, State.SENT_ATTEMPT)
"""SES may have a mail before its answer is written down, and a scanner reads it at once."""


def waiting_events(store: Reads, limit: int) -> Sequence[WaitingEvent]:
    """Those not applied yet, the oldest first."""
    return list(every(store, WAITING_EVENTS, order=["received_at"], limit=limit))


def inbox(store: Reads) -> InboxWaiting:
    return first(store, INBOX, {}) or {"waiting": 0, "oldest": None}


def delivery_events(
    store: Reads, *, message_id: str | None = None, email: str | None = None, limit: int = 100
) -> Sequence[DeliveryEvent]:
    """Of one message or one address, the latest first."""
    filters = {"message_id": message_id} if message_id is not None else {"email": email}
    return list(every(store, DELIVERY_EVENTS, filters, order=["-event_at"], limit=limit))


def lists_left(store: Reads, email_norm: str) -> set[str]:
    """Lists that they unsubscribed from once, or were unsubscribed from on the dashboard."""
    events = every(store, DELIVERY_EVENTS, {"email": email_norm, "event_type": EventType.UNSUBSCRIBE})
    return {str(one["detail"]["list_key"]) for one in events if "list_key" in one["detail"]}


def mailed_since(store: Reads, email_norm: str, moment: float) -> bool:
    """Whether mail with our link has been written to this address since then: a letter, a welcome or single
    mail, a rehearsal included."""
    recent = every(store, MAILOUT_IDS, {"active_at >=": moment})
    ids = [id_of_message(mailout["id"], email_norm) for mailout in recent]
    sent = {"email": email_norm, "category": Category.MARKETING, "state in": list(MAYBE_READ)}
    singles = store.select(SINGLE_MAILS, sent, order=["-seq"], limit=SINGLE_MAILS_LOOKED_AT)
    return any(
        row["state"] in MAYBE_READ and (row["sent_at"] or row["attempt_at"] or 0.0) >= moment
        for row in (*among(store, MESSAGES, "id", ids), *singles)
    )


def doubts_open(store: Reads) -> Doubts:
    """UNKNOWN messages of all mailouts, and since when the oldest is."""
    return first(store, DOUBTS, {}) or Doubts()


def usage_drift(store: Reads) -> Sequence[Drift]:
    """Counters that say less than the messages charged to them: there should be none."""
    return list(every(store, USAGE_DRIFT))
