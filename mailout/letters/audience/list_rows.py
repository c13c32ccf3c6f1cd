"""What is read of lists: what people can subscribe to, and how the letters of each look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any

from mailout.base.errors import NotFound, UsageError
from mailout.base.select import Reads, Table, View, every, first

GENERAL = "general"
"""Everybody's list: who has no row for it is on it, too, and a letter without a list is its."""


@dataclass(frozen=True, slots=True)
class List:
    """What its letters lack, they take from it; what it lacks, from the settings."""

    key: str
    name: str
    description: str = ""
    public: bool = False  # anybody may join by the sign-up page
    from_name: str | None = None
    reply_to: str | None = None
    footer: str | None = None  # why readers get it; None: as BRAND_FOOTER says
    brand: Mapping[str, Any] = field(default_factory=dict)  # logo, logo_dark, color, links, language
    archive: bool = False  # its letters are public unless one says otherwise
    welcome_ref: str | None = None  # the letter that a new reader gets once
    is_saved: bool = True  # False: an import has put people on it, and nobody has described it yet


LISTS = View("read_lists", List, ("key",))
LIST_TABLE = Table(
    "lists",
    List,
    tuple(field.name for field in fields(List) if field.name != "is_saved"),
    key=("key",),
)


def lists(store: Reads) -> Sequence[List]:
    """All of them, by key; also those that an import alone has made."""
    return list(every(store, LISTS))


def public_lists(store: Reads) -> Sequence[List]:
    """Those that anybody may join, by name."""
    return sorted(every(store, LISTS, {"public": True}), key=lambda one: (one.name.casefold(), one.key))


def list_or_none(store: Reads, key: str | None) -> List | None:
    """By its key; no key is `general`."""
    return first(store, LISTS, {"key": key or GENERAL})


def by_key_or_name(store: Reads, written: str) -> List:
    """The list that a person means: its key, else its name in any case. NotFound names the nearest one."""
    wanted = written.strip()
    if (found := list_or_none(store, wanted)) is not None and wanted:
        return found
    known = lists(store)
    meant = [one for one in known if wanted.casefold() in (one.name.casefold(), one.key.casefold())]
    if meant:
        return meant[0]
    raise NotFound(f"There is no list {wanted}.", remedy=_remedy(wanted, known))


def named_list(store: Reads, written: str | None) -> List | None:
    """The one that a letter names; a letter without a list is `general`'s. None: there is none."""
    try:
        return by_key_or_name(store, written or GENERAL)
    except NotFound:
        return None


def require_own_name(one: List, known: Iterable[List]) -> None:
    """A letter names a list by key or name: no two may answer to the same one."""
    name = one.name.casefold()
    for other in known:
        if other.key != one.key and name in (other.name.casefold(), other.key.casefold()):
            raise UsageError(
                f"There is a list called {other.name} already (key {other.key}).",
                remedy="Give this one another name.",
            )


def _remedy(wanted: str, known: Sequence[List]) -> str:
    names = {name.casefold(): one for one in known for name in (one.key, one.name)}
    near = get_close_matches(wanted.casefold(), names, n=1, cutoff=0.6)
    if near:
        meant = names[near[0]]
        return f"Did you mean {meant.name}{'' if meant.name == meant.key else f' ({meant.key})'}?"
    return "`mailout lists list` shows them all; `mailout lists add KEY` makes one."
