"""Dead letters: messages that failed for good, and what a person may do about them."""

from __future__ import annotations

from typing import Protocol

from mailout.base import error_log
from mailout.base.error_log import ErrorLog
from mailout.base.errors import UsageError
from mailout.outbox.delivery.port import Outbox

SEND = "send"
"""The topic of messages; each has its message's id."""


class DeadLetterStore(Outbox, ErrorLog, Protocol):
    """What is needed to send one again."""


def requeue(store: DeadLetterStore, id: str) -> str:
    """The message waits again, with all its attempts before it; it is no dead letter now. Its mailout."""
    letter = error_log.dead_letter(store, id)
    if letter["topic"] != SEND:
        raise UsageError(
            f"Dead letter {id} is of the topic {letter['topic']}: it is no message that could be sent.",
            remedy="When you have seen it: mailout dead-letters drop ID",
        )
    payload = letter["payload"]
    if not store.retry_failed(payload["mailout"], ids=[payload["message"]]):
        raise UsageError(
            "The message cannot be sent again: its mailout was cancelled.",
            remedy="Take it off the list: mailout dead-letters drop ID",
        )
    return str(payload["mailout"])
