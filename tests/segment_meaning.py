"""What a segment means, in plain Python: the definition that both stores' SQL is held against.

A comparison that cannot be made (a blank value; a number asked of a text) is neither true nor false: it
matches nobody, also below `not`. Only `not has` finds blanks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from operator import ge, gt, le, lt
from typing import Any

from mailout.letters.audience.segment_tree import EMAIL, JOINED, WHITE_SPACE, day_of, fold, number_of

_ORDERS = {"<": lt, "<=": le, ">": gt, ">=": ge}


def text_of(value: Any) -> str | None:
    """An attribute as text, without white space around it; None: blank. Lists and objects are no values."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        value = format(Decimal(repr(value)), "f")
    if not isinstance(value, str | int):
        return None
    return str(value).strip(WHITE_SPACE) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """What a segment may ask about somebody."""

    email: str
    joined: str  # the day, in UTC
    attributes: Mapping[str, Any] = field(default_factory=dict)
    places: Sequence[str] = ()
    lists: Sequence[str] = ()  # those they are on
    got: Sequence[str] = ()
    clicked: Sequence[str] = ()

    def value(self, name: str) -> str | None:
        known = {JOINED: self.joined, EMAIL: self.email}
        return known[name] if name in known else text_of(self.attributes.get(name))


def matches(tree: Sequence[Any], person: Person) -> bool:
    return _holds(tree, person) is True


def _holds(tree: Sequence[Any], person: Person) -> bool | None:
    match tree:
        case ["and", *parts]:
            return _all([_holds(part, person) for part in parts])
        case ["or", *parts]:
            return _not(_all([_not(_holds(part, person)) for part in parts]))
        case ["not", part]:
            return _not(_holds(part, person))
        case ["has", name]:
            return person.value(name) is not None
        case ["list", key]:
            return key in person.lists
        case ["place", ocd_id, ending]:
            return any(lies_in(place, ocd_id, ending) for place in person.places)
        case ["got", id]:
            return id in person.got
        case ["clicked", id]:
            return id in person.clicked
        case ["mailed"]:
            return bool(person.got)
        case ["compare", name, operator, values]:
            return _compared(person.value(name), operator, values)
    raise AssertionError(f"no part of a segment: {tree!r}")


def _all(verdicts: Sequence[bool | None]) -> bool | None:
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _not(verdict: bool | None) -> bool | None:
    return None if verdict is None else not verdict


def _compared(had: str | None, operator: str, values: Sequence[Any]) -> bool | None:
    if had is None:
        return None
    if operator == "in":
        return any(_equal(had, kind, value) for kind, value in values)
    ((kind, value),) = values
    if operator == "contains":
        return value in fold(had)
    known = _as(kind, had)
    return None if known is None else _ORDERS[operator](known, _as(kind, value))


def _as(kind: str, text: str) -> Any:
    return {"number": number_of, "day": day_of, "text": fold}[kind](text)


def _equal(had: str, kind: str, value: str) -> bool:
    """Of what is no number or no day, no number or day is the equal."""
    known = _as(kind, had)
    return known is not None and bool(known == _as(kind, value))


def lies_in(place: str, within: str, ending: str) -> bool:
    """The place itself, or one below it, that names the county or place (`ending`) at any depth."""
    if place != within and not place.startswith(f"{within}/"):
        return False
    return not ending or place.endswith(ending) or f"{ending}/" in place
