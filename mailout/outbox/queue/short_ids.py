"""A mailout named by the beginning of its id, as lists show it: in commands and in Prefect's forms."""

from __future__ import annotations

import re

from mailout.base.errors import NotFound, UsageError
from mailout.base.select import Reads
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import Mailout

MIN_ID_CHARS = 4
ALL_MAILOUTS = 100_000
"""Mailouts: more than anybody has."""

BEGINNING = re.compile(rf"[0-9a-f][0-9a-f-]{{{MIN_ID_CHARS - 1},}}")


def begun_with(store: Reads, name: str) -> Mailout | None:
    """The only one whose id begins so; UsageError: there are several."""
    written = name.strip().lower()
    if not BEGINNING.fullmatch(written):
        return None
    found = [m for m in queue_rows.mailouts(store, limit=ALL_MAILOUTS) if begins(m.id, written)]
    if len(found) > 1:
        raise ambiguous(name, [f"{m.id} “{m.subject}”" for m in found])
    return found[0] if found else None


def with_id(store: Reads, name: str) -> str:
    """The whole id of the one that is meant."""
    if (found := begun_with(store, name)) is None:
        raise no_mailout(f"There is no mailout {name.strip()}.")
    return found.id


def begins(id: str, written: str) -> bool:
    return id.startswith(written) or id.replace("-", "").startswith(written)


def no_mailout(message: str) -> NotFound:
    return NotFound(message, remedy="`mailout queue list` shows those that there are.")


def ambiguous(name: str, found: list[str]) -> UsageError:
    shown = ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
    return UsageError(f"{name} could be any of {len(found)}: {shown}.", remedy="Give more characters.")
