"""One line of the errors table, and the part of the store that keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict

from mailout.base.errors import NotFound
from mailout.base.select import Reads, Table, View, Writes, every, first

SAME_REFUSAL_SECONDS = 3_600.0
"""A letter that is refused for the same reason within an hour is one error: its page may ask every minute."""


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """One line of the errors database; equal ones are grouped when they are shown."""

    code: str
    message: str
    stage: str  # content, audience, delivery, feedback, report
    provider: str | None = None
    mailout: str | None = None
    email: str | None = None
    attempts: int | None = None
    at: float = 0.0
    id: int = field(default=0, compare=False)  # its number in the store


class DeadLetter(TypedDict):
    """What could not be delivered, or read."""

    id: str
    topic: str
    payload: Mapping[str, Any]
    error: str
    created_at: float


ERRORS = View("read_errors", ErrorRecord, ("id",))
DEAD_LETTERS = View("read_dead_letters", DeadLetter, ("id",))
ERROR_TABLE = Table(
    "error_records",
    ErrorRecord,
    ("at", "mailout", "stage", "provider", "email", "code", "message", "attempts"),
    at="at",
)


class ErrorLog(Writes, Protocol):
    """The errors table and the dead letters."""

    def drop_dead_letter(self, id: str) -> bool:
        """Take it off the list; what it tells of stays as it is. False: there is none."""

    def requeue_dead_letter(self, id: str) -> bool:
        """Back into the inbox, to be read again; False: it is not there, or it is not an SES event."""


def record_once(store: ErrorLog, error: ErrorRecord, since: float) -> bool:
    """False: the same was recorded since then. It is one thing to correct."""
    same = {"mailout": error.mailout, "code": error.code, "message": error.message, "at >=": since}
    if first(store, ERRORS, same) is not None:
        return False
    store.put(ERROR_TABLE, [error])
    return True


def errors(store: Reads, mailout: str | None = None, limit: int = 100) -> Sequence[ErrorRecord]:
    """The latest first."""
    filters = {} if mailout is None else {"mailout": mailout}
    return list(every(store, ERRORS, filters, order=["-id"], limit=limit))


def dead_letters(store: Reads, limit: int = 100) -> Sequence[DeadLetter]:
    """The latest first."""
    return list(every(store, DEAD_LETTERS, order=["-created_at"], limit=limit))


def dead_letter(store: Reads, id: str) -> DeadLetter:
    found = first(store, DEAD_LETTERS, {"id": id})
    if found is None:
        raise NotFound.dead_letter(id)
    return found
