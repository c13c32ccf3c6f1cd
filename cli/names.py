"""How people name a mailout or a message: an id or its beginning, a file, a Notion page, an address."""

from __future__ import annotations

import re
from uuid import UUID

from mailout import ids
from mailout.audience.addresses import address_of
from mailout.content.notion.links import page_id_of
from mailout.delivery.states import State
from mailout.engine import Engine
from mailout.errors import NotFound, UsageError
from mailout.queue.model import Mailout
from mailout.reporting.rows import pages
from mailout.wiring import names_a_file

SHORTEST = 4
SHORT = 8
"""Characters of an id that we show where a whole one is too long to read."""
ALL = 100_000
"""Mailouts: more than anybody has."""

_ID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_BEGINNING = re.compile(rf"[0-9a-f][0-9a-f-]{{{SHORTEST - 1},}}")


def find_mailout(engine: Engine, name: str) -> Mailout:
    """The one that is meant, or an error that says which there are."""
    store = engine.store
    if names_a_file(name):
        ref = engine.manuscript(name).ref
        return _real_one(engine, ref, f"{name} has not been sent yet, not even in part.")
    written = name.strip().lower()
    if _BEGINNING.fullmatch(written):
        found = [m for m in store.mailouts(limit=ALL) if _begins(m.id, written)]
        if len(found) == 1:
            return found[0]
        if found:
            raise _ambiguous(name, [f"{m.id} “{m.subject}”" for m in found])
    if page := page_id_of(name):
        return _real_one(engine, page, f"There is no mailout {name}.")
    if len(written) < SHORTEST:
        raise UsageError(f"{name!r} is too short for an id.", remedy=f"Give {SHORTEST} characters at least.")
    raise NotFound(f"There is no mailout {name}.", remedy="`mailout queue list` shows those that there are.")


def find_message(engine: Engine, mailout: Mailout | None, name: str, states: tuple[State, ...] = ()) -> str:
    """A message's id. Its beginning and its recipient's address are enough where the mailout is known."""
    written = name.strip().lower()
    if mailout is None:
        if not _ID.fullmatch(written):
            raise UsageError(
                "A message alone is named by its whole id.",
                remedy="With its mailout before it, the beginning or the recipient's address is enough.",
            )
        return str(UUID(written))
    if "@" in written:
        return ids.message_id(mailout.id, address_of(name) or written)
    if not _BEGINNING.fullmatch(written):
        raise UsageError(f"{name!r} is no message id.", remedy=f"Give {SHORTEST} characters at least.")
    rows = (row for page in pages(engine.store, mailout.id, states) for row in page)
    found: list[str] = [row["id"] for row in rows if _begins(row["id"], written)]
    if len(found) > 1:
        raise _ambiguous(name, found)
    if not found:
        raise NotFound(
            f"This mailout has no such message: {name}.", remedy="Give its recipient's address instead."
        )
    return found[0]


def _real_one(engine: Engine, ref: str, otherwise: str) -> Mailout:
    try:
        return engine.store.mailout(ids.mailout_id(ref))
    except NotFound:
        raise NotFound(otherwise, remedy="`mailout queue list` shows those that there are.") from None


def _begins(id: str, written: str) -> bool:
    return id.startswith(written) or id.replace("-", "").startswith(written)


def _ambiguous(name: str, found: list[str]) -> UsageError:
    shown = ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
    return UsageError(f"{name} could be any of {len(found)}: {shown}.", remedy="Give more characters.")
