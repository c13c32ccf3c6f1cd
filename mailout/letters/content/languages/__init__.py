"""The words around a letter, one file a language: footer, test mark, date, the pages people leave by."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from importlib import resources

FALLBACK = "en"
LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z]{2,4})?")


@dataclass(frozen=True, slots=True)
class Language:
    """One language's words. `{…}` in them is filled in by whoever shows them."""

    code: str
    unsubscribe: str
    test: str
    day_form: str  # {day}, {month}, {year}
    months: tuple[str, ...]
    pages: dict[str, str]

    def day(self, day: date) -> str:
        return self.day_form.format(day=day.day, month=self.months[day.month - 1], year=day.year)


@lru_cache(maxsize=1)
def shipped() -> tuple[str, ...]:
    names = (file.name for file in resources.files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


@lru_cache(maxsize=32)
def language(wanted: str) -> Language:
    """`pt-BR` is Portuguese; one that is not shipped is English."""
    code = wanted.partition("-")[0].lower()
    code = code if code in shipped() else FALLBACK
    words = tomllib.loads(resources.files(__name__).joinpath(f"{code}.toml").read_text(encoding="utf-8"))
    return Language(
        code, words["unsubscribe"], words["test"], words["date"], tuple(words["months"]), words["pages"]
    )


def preferred(accept: str) -> Language:
    """By what a browser says it wishes (`Accept-Language`); English if it wishes nothing that is shipped."""
    wishes = []
    for place, part in enumerate(accept[:500].split(",")):
        wish = re.fullmatch(
            r"\s*([A-Za-z]{2,3})(?:-[A-Za-z0-9-]+)?\s*(?:;\s*q\s*=\s*([01](?:\.\d{0,3})?))?\s*", part
        )
        if wish and float(wish[2] or 1) > 0:
            wishes.append((-float(wish[2] or 1), place, wish[1].lower()))
    known = (code for _, _, code in sorted(wishes) if code in shipped())
    return language(next(known, FALLBACK))
