"""Whom an article is for: a filter of named values, and the places (OCD ids) that it means."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mailout.base.errors import UsageError

GENERAL = "general"
"""The list that everybody is on."""
PLACES = ("state", "county", "place")
US = "ocd-division/country:us"
DISTRICTS, TERRITORIES = frozenset({"dc"}), frozenset({"as", "gu", "mp", "pr", "vi"})


_OCD_ID = re.compile(r"ocd-division/country:[a-z]{2}(/[a-z_]+:[\w.~-]+)*")


def split_places(written: str) -> tuple[list[str], list[str]]:
    """OCD ids, and what is none. Separated by anything that no id has: `a,b`, `{a,b}`, `["a","b"]`, `a|b`."""
    parts = dict.fromkeys(part for part in re.split(r"[\s,;|{}\[\]\"']+", written) if part)
    found = [part for part in parts if _OCD_ID.fullmatch(part)]
    return found, [part for part in parts if part not in found]


@dataclass(frozen=True, slots=True)
class AudienceFilter:
    """Who is meant: on this list, in these places, with these attributes."""

    written: Mapping[str, str] = field(default_factory=dict)
    list_key: str = GENERAL
    within: Sequence[tuple[str, str]] = ()  # (an OCD id, how an id within it may end): all must be met
    attributes: Mapping[str, str] = field(default_factory=dict)

    def admits(self, ocd_ids: Sequence[str]) -> bool:
        return all(any(_lies_in(id, *place) for id in ocd_ids) for place in self.within)


class FilterError(UsageError):
    """A filter cannot be understood."""

    def __init__(self, key: str, message: str, *, remedy: str | None = None) -> None:
        self.key = key
        super().__init__(message, remedy=remedy)


def read_filter(written: Mapping[str, str], anybody_has: Callable[[str], bool]) -> AudienceFilter:
    """`anybody_has` tells whether a subscriber has an attribute; what nobody has is a typing mistake."""
    values = {key: value.strip() for key, value in written.items()}
    for key, value in values.items():
        if not value:
            raise FilterError(key, f"The filter {key} is empty.", remedy="Leave it out, or give it a value.")
        if key not in (*PLACES, "list") and not anybody_has(key):
            raise FilterError(
                key,
                f"The filter {key} is unknown: no subscriber has such an attribute.",
                remedy=f"Known are {', '.join(PLACES)}, list, and the attributes of your subscribers.",
            )
    return AudienceFilter(
        written=dict(sorted(values.items())),
        list_key=values.get("list", GENERAL),
        within=_places(values),
        attributes={key: value for key, value in values.items() if key not in (*PLACES, "list")},
    )


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


def _lies_in(id: str, within: str, ending: str) -> bool:
    """The id itself, or one below it, that names the county or place at any depth."""
    if id != within and not id.startswith(f"{within}/"):
        return False
    return not ending or id.endswith(ending) or f"{ending}/" in id
