"""From the inbox to the store: events applied in batches. It can be killed anywhere and run again.

Receiving and applying are two commits. Until the first, SNS or SQS still has the message and sends it again;
after it, the row waits in `events_inbox` until the one transaction that applies it and marks it as applied.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from mailout.base.errors import StoreError, StoreUnavailable
from mailout.base.ids import message_id, uuid_of
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.feedback.events import NoEvent, Unreadable, parse_event
from mailout.outbox.feedback.port import (
    Applied,
    Effect,
    Event,
    EventReading,
    EventType,
    Feedback,
    Received,
    StatusChange,
    WaitingEvent,
)

log = logging.getLogger("mailout.feedback")

INGEST_EVENTS = 2_000
BouncePolicy = Literal["smart", "any", "permanent"]
SNS, SQS, SQS_RAW = "sns", "sqs", "sqs_raw"
"""How a message came. The first two have SNS's own id."""


@dataclass(frozen=True, slots=True)
class QueueMessage:
    id: str
    body: str
    receipt: str


class EventQueue(Protocol):
    """A queue that keeps a message until it is deleted."""

    def receive(self, wait: int = 20) -> Sequence[QueueMessage]: ...
    def delete(self, messages: Sequence[QueueMessage]) -> None: ...


def ingest(
    store: Feedback, policy: BouncePolicy, topics: Collection[str] = (), *, batch: int = INGEST_EVENTS
) -> Applied:
    """Apply everything that waits."""
    total = Applied()
    while waiting := feedback_rows.waiting_events(store, batch):
        total += apply(store, [read(row, policy, topics) for row in waiting])
    return total


def apply(store: Feedback, readings: Sequence[EventReading]) -> Applied:
    """A batch in one transaction. One that the store refuses must not hold up the others for ever."""
    try:
        return store.apply_events(readings)
    except StoreUnavailable:
        raise
    except StoreError as error:
        if len(readings) == 1:
            log.error("An event could not be applied: %s", error)
            problem = ("event_refused", f"The store refused it: {error}")
            return store.apply_events([EventReading(readings[0].inbox_id, problem=problem, dead=True)])
    return sum((apply(store, [reading]) for reading in readings), Applied())


def poll(
    store: Feedback, queue: EventQueue, topics: Collection[str], *, wait: int = 20, most: int = 2_000
) -> int:
    """Take what the queue holds into the inbox, or a good part of it: it may fill faster than we read.

    How many. A message leaves the queue after our commit.
    """
    taken = 0
    while taken < most and (messages := queue.receive(wait if not taken else 1)):
        store.receive_events([unwrap(message, topics) for message in messages])
        queue.delete(messages)
        taken += len(messages)
    return taken


def unwrap(message: QueueMessage, topics: Collection[str]) -> Received:
    """What SNS wrapped, unwrapped, under SNS's id; anything else as it is, for `read` to decide."""
    wrapped = _wrapped(message.body)
    if wrapped is None or (topics and wrapped["TopicArn"] not in topics):
        return Received(uuid_of("sqs", message.id), SQS_RAW, message.body.replace("\0", ""))
    return Received(wrapped["MessageId"], SQS, wrapped["Message"].replace("\0", ""))


def _wrapped(body: str) -> dict[str, str] | None:
    """SNS's notification; None: it is none."""
    try:
        payload: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(payload, dict) or payload.get("Type") != "Notification":
        return None
    found = {name: payload.get(name) for name in ("MessageId", "Message", "TopicArn")}
    sound = all(isinstance(value, str) for value in found.values()) and len(str(found["MessageId"])) <= 64
    return {name: str(value) for name, value in found.items()} if sound else None


def read(row: WaitingEvent, policy: BouncePolicy, topics: Collection[str] = ()) -> EventReading:
    """What one message comes to. Its topic may have become one of ours since it came."""
    wrapped = _wrapped(row.payload) if row.source == SQS_RAW and '"TopicArn"' in row.payload else None
    payload = wrapped["Message"] if wrapped and wrapped["TopicArn"] in topics else row.payload
    try:
        event = parse_event(payload)
    except Unreadable as error:
        return EventReading(row.id, problem=("event_unreadable", str(error)), dead=True)
    if isinstance(event, NoEvent):
        return EventReading(row.id, problem=(event.code, event.message) if event.code else None)
    at = row.received_at if event.at is None else event.at
    change = status_change_of(event, at, policy)
    return EventReading(
        row.id,
        [
            Effect(
                id=_effect_id(row, event, email),
                type=event.type,
                at=at,
                email=email,
                provider_message_id=event.provider_message_id,
                attempt=event.attempt,
                mailout_id=event.mailout_id,
                change=change,
                recount=policy == "smart" and _softly(event),
                detail=event.detail,
            )
            for email in _concerned(event) or (None,)
        ],
    )


def _concerned(event: Event) -> Sequence[str]:
    """Whom we had written to, where our tags prove it: a bounce may name an address that it was forwarded to.

    While the message is in the outbox the store knows that better; in an archive it is out of reach.
    """
    if event.attempt is not None and event.mailout_id is not None:
        for address in event.destination:
            if message_id(event.mailout_id, address) == event.attempt.id:
                return (address,)
    return event.recipients


def status_change_of(event: Event, at: float, policy: BouncePolicy) -> StatusChange | None:
    """What the event alone says of its recipient. `smart`: soft bounces count together, in the store."""
    match event.type:
        case EventType.BOUNCE if policy == "any" or event.bounce_type == "Permanent":
            return StatusChange("bounced", at, event.bounce_type, event.bounce_subtype)
        case EventType.SPAMREPORT:
            return StatusChange("unsubscribed", at, complained=True)
        case EventType.UNSUBSCRIBE:
            return StatusChange("unsubscribed", at)
    return None


def _softly(event: Event) -> bool:
    """Whether soft bounces look different after it: another one, or a delivery between them."""
    soft = event.type is EventType.BOUNCE and event.bounce_type != "Permanent"
    return soft or event.type is EventType.DELIVERED


def _effect_id(row: WaitingEvent, event: Event, email: str | None) -> str:
    """SNS's id, else what SES says of the event; per recipient either way."""
    if row.source == SQS_RAW and event.provider_message_id and event.at is not None:
        named = (event.provider_message_id, event.type.value, f"{event.at:.3f}", event.detail.get("link", ""))
        return uuid_of("event", *named, email or "")
    return uuid_of("event", row.id, email or "")
