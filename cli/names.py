"""How people name a mailout or a message: an id or its beginning, a file, a Notion page, an address."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from mailout import ids
from mailout.content.notion.links import page_id_of
from mailout.delivery.states import State
from mailout.engine import Engine
from mailout.errors import NotFound, UsageError
from mailout.queue.model import Mailout

SHORTEST = 4
SHORT = 8
"""Characters of an id that we show where a whole one is too long to read."""
ALL = 100_000

_ID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_BEGINNING = re.compile(rf"[0-9a-f][0-9a-f-]{{{SHORTEST - 1},}}")


def find_mailout(engine: Engine, name: str) -> Mailout:
    """The one that is meant, or an error that says which there are."""
    store = engine.store
    if _is_file(name):
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
    if mailout is None:
        if not _ID.fullmatch(name):
            raise UsageError(
                "A message alone is named by its whole id.",
                remedy="With its mailout before it, the beginning or the recipient's address is enough.",
            )
        return name
    if "@" in name:
        return ids.message_id(mailout.id, name.strip().lower())
    if not _BEGINNING.fullmatch(name):
        raise UsageError(f"{name!r} is no message id.", remedy=f"Give {SHORTEST} characters at least.")
    found = [id for id in _message_ids(engine, mailout, states) if _begins(id, name)]
    if len(found) > 1:
        raise _ambiguous(name, found)
    if not found:
        raise NotFound(f"This mailout has no such message: {name}.")
    return found[0]


def _message_ids(engine: Engine, mailout: Mailout, states: tuple[State, ...]) -> Iterable[str]:
    after = 0
    while page := engine.store.messages(mailout.id, after=after, limit=5_000, states=states):
        yield from (row["id"] for row in page)
        after = page[-1]["seq"]


def _is_file(name: str) -> bool:
    return name.lower().endswith((".md", ".markdown")) or Path(name).is_file()


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
