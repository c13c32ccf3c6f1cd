"""What the rows that were picked ask for, and which messages they have in our outbox already."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from mailout.base.clock import Clock
from mailout.base.select import among
from mailout.kinds.notifications.messages import NotificationMessages
from mailout.kinds.notifications.port import Producer, ProducerRow
from mailout.kinds.notifications.rules import Fail, Skip, Wait, verdict, was_taken_back
from mailout.letters.content.model import Content
from mailout.outbox.delivery.outbox_rows import MESSAGES
from mailout.outbox.delivery.port import Message, Outbox
from mailout.outbox.delivery.single_mails import SingleMails

log = logging.getLogger("mailout.notifications")


class NotificationStore(Outbox, SingleMails, Protocol):
    """What the worker reads and writes on our side."""


@dataclass(slots=True)
class PickedRow:
    """A row that was picked: what it asks for, and the message that it has in our outbox."""

    row: ProducerRow
    made: tuple[Mapping[str, Any], Content] | Skip | Fail | Wait
    id: str = ""  # of its message
    requeues: int = 0
    message: Message | None = None  # None: not in the outbox yet
    replaced: list[Message] = field(default_factory=list)  # what it had before it was requeued


@dataclass(eq=False, repr=False)
class RowLookup:
    """Reads the producer's side and ours; it writes nothing."""

    _producer: Producer
    _store: NotificationStore
    _messages: NotificationMessages
    _clock: Clock
    _zone: ZoneInfo

    def look_up(self, picked: Sequence[ProducerRow]) -> Sequence[PickedRow]:
        """A row that is pending although it was told its message's end was requeued: it asks for the next."""
        now = self._clock.now()
        asked = [PickedRow(row, self._what_it_asks_for(row, now)) for row in picked]
        looked_for, ahead = asked, 1
        while looked_for:
            found = self.read([self._id(one, n) for one in looked_for for n in range(ahead)])
            met = [one.row for one in looked_for if self._id(one) in found]
            ended = self._producer.reported(met) if met else set()
            looked_for = [one for one in looked_for if self._goes_past(one, ahead, found, ended)]
            ahead *= 2  # one that was held up for a day has had many
        return asked

    def _id(self, one: PickedRow, further: int = 0) -> str:
        content = one.made[1] if isinstance(one.made, tuple) else None
        return self._messages.id(one.row, one.requeues + further, content)

    def _goes_past(
        self, one: PickedRow, ahead: int, found: Mapping[str, Message], ended: set[tuple[int, str]]
    ) -> bool:
        """Past so many messages that are over; False: it has come to the one that it asks for."""
        for _ in range(ahead):
            one.id = self._id(one)
            one.message = found.get(one.id)
            if one.message is None:
                return False
            if (one.row.notification_id, one.id) not in ended and not was_taken_back(one.message):
                return False
            one.replaced.append(one.message)
            one.requeues += 1
        return True

    def _what_it_asks_for(
        self, row: ProducerRow, now: float
    ) -> tuple[Mapping[str, Any], Content] | Skip | Fail | Wait:
        try:
            return verdict(row, now=now, zone=self._zone) or self._messages.make(row)
        except (OSError, MemoryError):
            raise  # this machine's trouble, not the row's
        except Exception as error:  # noqa: BLE001 (it would end every worker that picks the row)
            # Only where it happened: what an error says may hold an address.
            *_, place = traceback.extract_tb(error.__traceback__)
            log.error(
                "notification %d cannot be made into a mail: %s at %s:%s",
                *(row.notification_id, type(error).__name__, place.name, place.lineno),
                extra=named_in_logs(row),
            )
            return Fail("broken_payload", f"No mail could be made of it: {type(error).__name__}.")

    def read(self, ids: Iterable[str]) -> Mapping[str, Message]:
        return {message["id"]: message for message in among(self._store, MESSAGES, "id", list(set(ids)))}


def named_in_logs(row: ProducerRow) -> Mapping[str, object]:
    event = row.event or {}
    return {
        "traceId": event.get("trace_id"),
        "subscriptionId": row.notification.get("subscription_id"),
        "openEventId": row.notification.get("open_event_id"),
        "term": event.get("term_id"),
        "campus": event.get("campus_code"),
    }
