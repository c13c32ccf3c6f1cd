"""The tree of a segment: plain lists and texts, so that it can be kept and sent as JSON.

The SQL of each store gives it its meaning; both are tested against one in plain Python. A comparison that
cannot be made (a blank value; a number asked of a text) is neither true nor false: it matches nobody, also
below `not`. Only `not has` finds blanks.
Names in it were written by people: no store may use one as an identifier.

    ["and", tree, ...]  ["or", tree, ...]  ["not", tree]
    ["has", field]      ["compare", field, "in" | "<" | "<=" | ">" | ">=" | "contains", [value, ...]]
    ["list", key]       ["place", ocd id, ending]      ["got", id]  ["clicked", id]  ["mailed"]
    a value: ["text", folded] | ["number", written] | ["day", "2026-01-31"]
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mailout.base.errors import MailoutError, UsageError

Tree = list[Any]
LONGEST_FILTER = 10_000
"""Characters."""
JOINED, EMAIL = "joined", "email"
"""Fields that are not attributes: the day on which somebody became a subscriber (UTC), and the address."""
WHITE_SPACE = " \t\n\r\f\v"
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_DAY = re.compile(r"([0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01]))(?:[T ].*)?", re.DOTALL)


class SegmentError(UsageError):
    """A filter cannot be understood, or names what is not there."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A filter by name. Letters stand in the tree by the id of their mailout."""

    name: str
    filter: str  # as it was written
    tree: Tree
    updated_at: float = 0.0

    @property
    def hash(self) -> str:
        return hash_of(self.tree)


def whole(list_key: str | None, tree: Tree) -> Tree | None:
    """Of whom a segment takes a part: everybody on the list; without one, on `general` or on a list that the
    segment asks for."""
    return None if list_key else ["or", ["list", "general"], *(["list", key] for key in lists_of(tree))]


def equal_to(field: str, value: str) -> Tree:
    """`field = "value"`."""
    return ["compare", field, "in", [["text", fold(value)]]]


def removed_letter(name: str, error: type[MailoutError] = SegmentError) -> MailoutError:
    return error(
        f"Nobody knows any more who got “{name}”: retention has removed its messages.",
        remedy="Take this condition out of the filter.",
    )


def hash_of(tree: Tree) -> str:
    """The same for every spelling of the same filter."""
    return hashlib.sha256(json.dumps(tree, ensure_ascii=False).encode()).hexdigest()


def leaves(tree: Tree) -> Iterator[Tree]:
    if tree[0] in ("and", "or", "not"):
        for part in tree[1:]:
            yield from leaves(part)
    else:
        yield tree


def replaced(tree: Tree, change: Callable[[Tree], Tree]) -> Tree:
    """The same tree with other leaves."""
    if tree[0] in ("and", "or", "not"):
        return [tree[0], *(replaced(part, change) for part in tree[1:])]
    return change(tree)


def lists_of(tree: Tree, wanted: bool = True) -> list[str]:
    """The lists whose readers it asks for: those that do not stand below a `not`."""
    if tree[0] == "list":
        return [tree[1]] if wanted else []
    if tree[0] not in ("and", "or", "not"):
        return []
    wanted = wanted is not (tree[0] == "not")
    return sorted({key for part in tree[1:] for key in lists_of(part, wanted)})


def nesting(tree: Tree) -> int:
    """How deep it goes; without recursion, since it may be deep."""
    deepest, open_parts = 0, [(tree, 1)]
    while open_parts:
        part, depth = open_parts.pop()
        deepest = max(deepest, depth)
        if part[0] in ("and", "or", "not"):
            open_parts += [(inner, depth + 1) for inner in part[1:]]
    return deepest


# ── Values: how each kind is read ──


def fold(text: str) -> str:
    """Without case, as Postgres has it: a letter for a letter, composed (NFC), and one sigma."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", text).replace("İ", "i").lower().replace("ς", "σ")


def number_of(text: str) -> float | None:
    """None: it is none, or has so many digits that it is a name made of digits."""
    return float(text) if _NUMBER.fullmatch(text) else None


def day_of(text: str) -> str | None:
    """The day of an ISO date, with a time or without."""
    found = _DAY.fullmatch(text)
    return found.group(1) if found else None
