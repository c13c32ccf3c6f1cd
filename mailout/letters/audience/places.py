"""Whom an article is for: a filter of named values, and the places (OCD ids) that it means."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mailout.base.errors import UsageError
from mailout.letters.audience.list_rows import GENERAL
from mailout.letters.audience.segment_tree import SegmentError, Tree, equal_to

PLACES = ("state", "county", "place")
US = "ocd-division/country:us"
DISTRICTS, TERRITORIES = frozenset({"dc"}), frozenset({"as", "gu", "mp", "pr", "vi"})


_OCD_ID = re.compile(r"ocd-division/country:[a-z]{2}(/[a-z_]+:[\w.~-]+)*")


def split_places(written: str) -> tuple[list[str], list[str]]:
    """OCD ids, and what is none. Separated by anything that no id has: `a,b`, `{a,b}`, `["a","b"]`, `a|b`."""
    parts = dict.fromkeys(part for part in re.split(r"[\s,;|{}\[\]\"']+", written) if part)
    found = [part for part in parts if _OCD_ID.fullmatch(part)]
    return found, [part for part in parts if part not in found]


FILTER = "filter"
"""The key under which a filter in the language of segments stands."""


@dataclass(frozen=True, slots=True)
class AudienceFilter:
    """Who is meant: on this list, and in this segment."""

    written: Mapping[str, str] = field(default_factory=dict)
    list_key: str = GENERAL
    segment: Tree | None = None  # None: everybody


class FilterError(UsageError):
    """A filter cannot be understood."""

    def __init__(self, key: str, message: str, *, remedy: str | None = None) -> None:
        self.key = key
        super().__init__(message, remedy=remedy)


def read_filter(
    written: Mapping[str, str], anybody_has: Callable[[str], bool], bound: Callable[[Tree], Tree]
) -> AudienceFilter:
    """Named values, and under `filter` the language of segments; all of them must be met.

    `anybody_has` tells whether a subscriber has an attribute; what nobody has is a typing mistake. `bound`
    checks the names in a segment.
    """
    values = {key: value.strip() for key, value in written.items()}
    for key, value in values.items():
        if not value:
            raise FilterError(key, f"The filter {key} is empty.", remedy="Leave it out, or give it a value.")
        if key not in (*PLACES, "list", FILTER) and not anybody_has(key):
            raise FilterError(
                key,
                f"The filter {key} is unknown: no subscriber has such an attribute.",
                remedy=f"Known are {', '.join(PLACES)}, list, and the attributes of your subscribers.",
            )
    parts = [["place", *place] for place in _places(values)]
    parts += [equal_to(key, value) for key, value in values.items() if key not in (*PLACES, "list", FILTER)]
    if FILTER in values:
        parts.append(_segment(values[FILTER], bound))
    return AudienceFilter(
        written=dict(sorted(values.items())),
        list_key=values.get("list", GENERAL),
        segment=["and", *parts] if parts else None,
    )


def _segment(written: str, bound: Callable[[Tree], Tree]) -> Tree:
    from mailout.letters.audience.segments import read_segment  # the grammar takes a while to load

    try:
        return bound(read_segment(written).tree)
    except SegmentError as error:
        raise FilterError(FILTER, error.message, remedy=error.remedy) from error


def _places(values: Mapping[str, str]) -> list[tuple[str, str]]:
    if "state" not in values:
        for key in ("county", "place"):
            if key in values:
                raise FilterError(
                    key, f"The filter {key} needs a state.", remedy="Add one: state=OH, for example."
                )
        return []
    state = _state(values["state"])
    found = [(state, "")]
    if "county" in values:
        name = re.sub(r"\s+(county|parish|borough)$", "", values["county"], flags=re.IGNORECASE)
        found.append((state, f"/county:{slug(name)}"))
    if "place" in values:
        found.append((state, f"/place:{slug(values['place'])}"))
    return found


def _state(written: str) -> str:
    code = written.lower()
    if not re.fullmatch("[a-z]{2}", code):
        raise FilterError(
            "state", f"The filter state={written} is no state.", remedy="Give its two letters, such as OH."
        )
    kind = "district" if code in DISTRICTS else "territory" if code in TERRITORIES else "state"
    return f"{US}/{kind}:{code}"


def slug(name: str) -> str:
    """As OCD ids have it: `Upper Arlington` → `upper_arlington`, `Prince George's` → `prince_george~s`."""
    spaced = re.sub(r"\s+", "_", name.strip().lower().replace(".", ""))
    return re.sub(r"[^\w~-]", "~", spaced)
