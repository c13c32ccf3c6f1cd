"""How people name a mailout, a message or an import: an id or its beginning, a file, a page, an address."""

from __future__ import annotations

from uuid import UUID

from mailout.app.engine import Engine
from mailout.base import ids
from mailout.base.addresses import address_of
from mailout.base.errors import NotFound, UsageError
from mailout.base.select import every
from mailout.letters.audience.port import ImportRecord
from mailout.letters.audience.subscriber_rows import IMPORTS
from mailout.letters.content.refs import PAGE_ID, names_a_file, page_id_of
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.outbox_rows import outcomes
from mailout.outbox.delivery.states import State
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import Mailout
from mailout.outbox.queue.short_ids import (
    ALL_MAILOUTS,
    BEGINNING,
    MIN_ID_CHARS,
    ambiguous,
    begins,
    begun_with,
    no_mailout,
)

SHORT_ID_CHARS = 8
"""Characters of an id that we show where a whole one is too long to read."""


def find_mailout(engine: Engine, name: str) -> Mailout:
    """The one that is meant, or an error that says which there are."""
    if names_a_file(name):
        found = _written_as(engine, engine.intake.letters.read(name).ref)
        if found is None:
            raise no_mailout(f"{name} has not been sent yet, not even in part.")
        return found
    by_ref = _written_as(engine, name.strip())  # the id in a file's front matter
    if by_ref is not None:
        return by_ref
    if (begun := begun_with(engine.store, name)) is not None:
        return begun
    if (page := page_id_of(name)) and (of_page := _written_as(engine, page)):
        return of_page
    if len(name.strip()) < MIN_ID_CHARS:
        raise UsageError(
            f"{name!r} is too short for an id.", remedy=f"Give {MIN_ID_CHARS} characters at least."
        )
    raise no_mailout(f"There is no mailout {name}.")


def find_message(engine: Engine, mailout: Mailout | None, name: str, states: tuple[State, ...] = ()) -> str:
    """A message's id. Its beginning and its recipient's address are enough where the mailout is known."""
    written = name.strip().lower()
    if mailout is None:
        id = str(UUID(written)) if PAGE_ID.fullmatch(written) else name.strip()
        found_anywhere = outbox_rows.find_messages(engine.store, id)
        if len(found_anywhere) > 1:
            raise ambiguous(name, list(found_anywhere))
        if found_anywhere:
            return found_anywhere[0]
        raise NotFound(
            f"No message, request or SES message has the id {name}.",
            remedy="Give the whole id: `mailout messages list --state pending` (or failed, unknown) shows"
            " single mails. For one of a mailout: mailout status MAILOUT --message ADDRESS",
        )
    if "@" in written:
        return ids.message_id(mailout.id, address_of(name) or written)
    if not BEGINNING.fullmatch(written):
        raise UsageError(f"{name!r} is no message id.", remedy=f"Give {MIN_ID_CHARS} characters at least.")
    rows = outcomes(engine.store, mailout.id, states)
    found = [row["id"] for row in rows if begins(row["id"], written)]
    if len(found) > 1:
        raise ambiguous(name, found)
    if not found:
        raise NotFound(
            f"This mailout has no such message: {name}.", remedy="Give its recipient's address instead."
        )
    return found[0]


def find_import(engine: Engine, name: str) -> ImportRecord:
    """By its id or the beginning of it."""
    written = name.strip().lower()
    begun = []
    if BEGINNING.fullmatch(written):
        begun = [one for one in every(engine.store, IMPORTS) if begins(one.id, written)]
    if len(begun) > 1:
        raise ambiguous(name, [f"{one.id} {one.file}" for one in begun])
    if not begun:
        raise NotFound(f"There is no import {name}.", remedy="`mailout subscribers undo-import` lists them.")
    return begun[0]


def _written_as(engine: Engine, ref: str) -> Mailout | None:
    """Of a page or file, the mailout to people or the latest rehearsal: first what this transport sends."""
    rehearsals = [
        m for m in queue_rows.mailouts(engine.store, limit=ALL_MAILOUTS) if m.ref == ref and m.is_rehearsal
    ]
    rehearsal = max((m for m in rehearsals if not m.is_test), key=lambda m: m.created_at, default=None)
    try:
        real = engine.store.mailout(ids.mailout_id(ref))
    except NotFound:
        return rehearsal
    return rehearsal or real if engine.rehearses else real
