"""Dead letters: messages that failed for good, and what a person may do about them."""

from __future__ import annotations

from typing import Protocol

from mailout.base import error_log
from mailout.base.error_log import DeadLetter, ErrorLog
from mailout.base.errors import UsageError
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.port import Outbox
from mailout.outbox.delivery.states import State
from mailout.outbox.queue.mailout import Status
from mailout.outbox.queue.port import Queue

SEND = "send"
"""The topic of messages; each has its message's id."""
EVENTS = "ses-events"
"""The topic of what SES has reported and nobody could read."""


class DeadLetterStore(Outbox, Queue, ErrorLog, Protocol):
    """What is needed to send one again."""


def requeue(store: DeadLetterStore, *ids: str) -> list[str]:
    """The messages wait again, with all their attempts before them, and the events to be read; they are no
    dead letters now. The messages' mailouts. If one cannot be sent again, nothing has changed."""
    messages: dict[str, list[str]] = {}
    letters = [error_log.dead_letter(store, id) for id in dict.fromkeys(ids)]
    for letter in letters:
        if letter["topic"] != EVENTS:
            mailout, message = _sendable(store, letter)
            messages.setdefault(mailout, []).append(message)
    for letter in letters:
        if letter["topic"] == EVENTS:
            store.requeue_dead_letter(letter["id"])
    for mailout, own in messages.items():
        store.retry_failed(mailout, ids=own)
    return sorted(messages)


def _sendable(store: DeadLetterStore, letter: DeadLetter) -> tuple[str, str]:
    """Its mailout and its message."""
    id = letter["id"]
    if letter["topic"] != SEND:
        raise _cannot(id, f"it is of the topic {letter['topic']}, and no message")
    mailout, message = str(letter["payload"]["mailout"]), str(letter["payload"]["message"])
    state = outbox_rows.message(store, message)["state"]
    if state == State.VALIDATION_FAILED:
        raise _cannot(id, "the checks refused its message before it was sent, and would refuse it again")
    if state != State.FAILED:
        raise _cannot(id, f"its message is {state}")
    if store.mailout(mailout).status is Status.CANCELLED:
        raise _cannot(id, "its mailout was cancelled")
    return mailout, message


def _cannot(id: str, why: str) -> UsageError:
    return UsageError(
        f"Dead letter {id} cannot be sent again: {why}.",
        remedy="Take it off the list: mailout dead-letters drop ID",
    )
