"""Segments by name: what a filter names is there, or the nearest name is told; kept, found, and let go."""

from __future__ import annotations

import json
import shlex
import unicodedata
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any, TypedDict

from mailout.base.errors import NotFound, UsageError
from mailout.base.ids import mailout_id
from mailout.base.select import Reads, Table, View, every, first
from mailout.letters.audience.list_rows import by_key_or_name, named_list
from mailout.letters.audience.port import Subscribers
from mailout.letters.audience.segment_tree import (
    EMAIL,
    JOINED,
    Segment,
    SegmentError,
    Tree,
    fold,
    leaves,
    removed_letter,
    replaced,
)
from mailout.letters.content.refs import page_id_of

LONGEST_NAME = 100
"""Characters."""
SAMPLE_PEOPLE = 10
VALUES_LOOKED_FOR = 20
"""Each value that nobody has costs a look at everybody."""
LETTERS_COMPARED = 1000


class _Name(TypedDict):
    name: str


class _Letter(TypedDict):
    id: str
    ref: str
    subject: str
    archived_at: float | None


SEGMENTS = View("read_segments", Segment, ("name",))
SEGMENT_TABLE = Table(
    "segments", Segment, ("name", "filter", "tree", "hash", "updated_at"), at="updated_at", key=("name",)
)
ATTRIBUTES = View("read_attributes", _Name, ("email",))  # unique for one name
ATTRIBUTE_NAMES = View("read_attribute_names", _Name, ("name",))
LETTERS = View("read_mailouts", _Letter, ("id",))


def segments(store: Reads) -> Sequence[Segment]:
    return list(every(store, SEGMENTS))


def segment(store: Reads, name: str) -> Segment:
    found = first(store, SEGMENTS, {"name": name})
    if found is None:
        known = [one.name for one in segments(store)]
        raise SegmentError(
            f"There is no segment “{name}”.{_nearest(name, known)}",
            remedy=f"Known are {_few(known)}." if known else "Add one: mailout segments add NAME FILTER",
        )
    return found


def usable_segment(store: Reads, name: str) -> Segment:
    """Refused also if it was changed by hand, or asks for a letter that retention has removed since."""
    found = segment(store, name)
    if not _is_as_saved(store, found):
        raise SegmentError(
            f"The segment “{name}” was changed by hand in the store, or its filter is read differently now.",
            remedy=f"Save it again: mailout segments add {shlex.quote(name)} FILTER",
        )
    for leaf in leaves(found.tree):
        if leaf[0] in ("got", "clicked"):
            _letter(store, leaf[1])
    return found


def save(store: Subscribers, name: str, written: str) -> tuple[Segment, list[str]]:
    """Add it, or give it another filter; and what to look at."""
    from mailout.letters.audience.segments import read_segment  # the grammar takes a while to load

    name = _checked_name(name)
    found = read_segment(written)
    made = Segment(name, found.text, bound(store, found.tree))
    store.put(SEGMENT_TABLE, [made])
    return made, list(warnings(store, made.tree))


def delete(store: Subscribers, name: str) -> None:
    segment(store, name)
    if store.delete_segment(name):
        return
    letters = ", ".join(f"“{one['subject'] or one['ref']}” ({one['id']})" for one in waiting(store, name))
    raise UsageError(
        f"The segment “{name}” is used by a letter that waits: {letters}.",
        remedy="Cancel it first: mailout queue cancel ID",
    )


def waiting(store: Reads, name: str) -> Sequence[_Letter]:
    """Letters that will take its filter when their audience is frozen."""
    unfrozen = {
        "segment": name,
        "segment_filter": None,
        "is_test": False,
        "status in": ["PENDING", "PROCESSING"],
    }
    return store.select(LETTERS, unfrozen)


def bound(store: Reads, tree: Tree) -> Tree:
    """The tree with letters by the id of their mailout and lists by their key. Unknown names are refused."""
    return replaced(tree, lambda leaf: _bound(store, leaf))


def warnings(store: Subscribers, tree: Tree) -> Iterator[str]:
    """Values that no subscriber has: most likely a typing mistake."""
    asked = (
        (leaf[1], ["compare", leaf[1], leaf[2], [value]], value[1])
        for leaf in leaves(tree)
        if leaf[0] == "compare" and leaf[2] in ("in", "contains") and leaf[1] != JOINED
        for value in leaf[3]
    )
    places = ((leaf[1], leaf, leaf[1]) for leaf in leaves(tree) if leaf[0] == "place")
    for name, leaf, value in islice((*asked, *places), VALUES_LOOKED_FOR):
        if not store.audience_sample(None, leaf, 1):
            if leaf[0] == "place":
                yield f"No subscriber is in the place {name}."
            else:
                how = "contains" if leaf[2] == "contains" else "="
                yield f"No subscriber has {name} {how} {json.dumps(value, ensure_ascii=False)}."


def _bound(store: Reads, leaf: Tree) -> Tree:
    match leaf[0]:
        case "has" | "compare":
            _require_field(store, leaf[1])
        case "list":
            return ["list", _list_key(store, leaf[1])]
        case "got" | "clicked":
            return [leaf[0], _letter(store, leaf[1])["id"]]
    return leaf


def _is_as_saved(store: Reads, found: Segment) -> bool:
    """Whether its tree is still that of its filter: people get the letter by the one, and read the other."""
    from mailout.letters.audience.segments import read_segment  # the grammar takes a while to load

    try:
        return _is_bound(store, read_segment(found.filter).tree, found.tree)
    except SegmentError:
        return False


def _is_bound(store: Reads, written: Tree, kept: Any) -> bool:
    """Whether `kept` can be what `bound` made of it. A list may have got another name since."""
    if not isinstance(kept, list) or len(kept) != len(written) or kept[0] != written[0]:
        return False
    match written[0]:
        case "and" | "or" | "not":
            parts = zip(written[1:], kept[1:], strict=True)
            return all(_is_bound(store, part, its) for part, its in parts)
        case "list":
            known = named_list(store, written[1])
            return known is None or known.key == kept[1]
        case "got" | "clicked":
            return kept[1] in _letter_ids(written[1])
    return kept == written


def anybody_has(store: Reads, attribute: str) -> bool:
    return first(store, ATTRIBUTES, {"name": attribute}) is not None


def _require_field(store: Reads, name: str) -> None:
    if name in (JOINED, EMAIL) or anybody_has(store, name):
        return
    known = [JOINED, EMAIL, *(one["name"] for one in every(store, ATTRIBUTE_NAMES))]
    raise SegmentError(
        f"No subscriber has an attribute “{name}”.{_nearest(name, known)}",
        remedy=f"Known are {_few(known)}.",
    )


def _list_key(store: Reads, written: str) -> str:
    try:
        return by_key_or_name(store, written).key
    except NotFound as error:
        raise SegmentError(error.message, remedy=error.remedy) from None


def _letter(store: Reads, written: str) -> _Letter:
    """By the id of its mailout, its page's id or address, or its file's id. One that people got."""
    for id in _letter_ids(written):
        found = first(store, LETTERS, {"id": id, "mode": "real"})
        if found is not None and found["archived_at"] is not None:
            raise removed_letter(found["subject"] or written)
        if found is not None:
            return found
    if first(store, LETTERS, {"ref": page_id_of(written) or written}) is not None:
        raise SegmentError(
            f"“{written}” was only tested or rehearsed: nobody got it yet.", remedy="Send it to people first."
        )
    known = store.select(LETTERS, {"mode": "real"}, order=["-created_at"], limit=LETTERS_COMPARED)
    names = {one["subject"]: one["ref"] for one in known} | {one["ref"]: one["ref"] for one in known}
    meant = get_close_matches(written, names, n=1)
    hint = f" Did you mean “{names[meant[0]]}”?" if meant else ""
    raise SegmentError(
        f"There is no letter “{written}”.{hint}",
        remedy="Name it by its mailout's id (mailout queue list), its page, or its file's id.",
    )


def _letter_ids(written: str) -> tuple[str, str]:
    return written.lower(), mailout_id(page_id_of(written) or written)


def _checked_name(written: str) -> str:
    name = " ".join(written.split())
    if not name or len(name) > LONGEST_NAME:
        raise UsageError(
            f"The name of a segment has 1 to {LONGEST_NAME} characters.", remedy="Give it a short one: porto"
        )
    if any(unicodedata.category(one) in ("Cc", "Cf", "Cs", "Co", "Cn") for one in name):
        raise UsageError(
            f"The name {name!r} holds a character that nobody can see.", remedy="Write the name anew."
        )
    return name


def _nearest(name: str, known: Sequence[str]) -> str:
    by_fold = {fold(one): one for one in known}
    meant = get_close_matches(fold(name), by_fold, n=1)
    return f" Did you mean “{by_fold[meant[0]]}”?" if meant else ""


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:SAMPLE_PEOPLE]) + (", …" if len(names) > SAMPLE_PEOPLE else "")
