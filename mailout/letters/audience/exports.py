"""Exports of other products, known by their columns to the letter: `exports.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mailout.letters.audience.columns import value_key
from mailout.letters.audience.wishes import ANY, Meaning, Verdicts

COPY = r"( ?\(\d+\))?"
"""What a browser adds to the name of a file that it saves again."""


@dataclass(frozen=True, slots=True)
class Export:
    """One kind of export. See the head of `exports.toml`."""

    name: str
    headers: frozenset[str]
    file: str = ""
    own: frozenset[str] = frozenset()
    says: Mapping[str, Verdicts] = field(default_factory=dict)
    everybody: Meaning = Meaning.ACTIVE
    consent: bool = True
    hints: Mapping[str, str] = field(default_factory=dict)

    def fits(self, file: str, headers: Sequence[str], cells: Mapping[str, Collection[str]]) -> bool:
        if not self.headers <= set(headers):
            return False
        if self.file and not re.fullmatch(self.file + COPY, Path(file).stem):
            return False
        return all(
            value in verdicts or (value and ANY in verdicts)
            for column, verdicts in self.says.items()
            for value in map(value_key, cells.get(column, ()))
        )


def _export(entry: Mapping[str, Any]) -> Export:
    says = {
        column: {
            ANY if value == "*" else value_key(value): Meaning[to.upper()]
            for to, values in meanings.items()
            for value in values
        }
        for column, meanings in entry.get("says", {}).items()
    }
    return Export(
        entry["name"],
        frozenset(entry["headers"]),
        entry.get("file", ""),
        frozenset(entry.get("own", ())),
        says,
        Meaning[entry.get("everybody", "active").upper()],
        # A file that says nothing at all about anybody's wish is no answer.
        entry.get("consent", True) and ("everybody" in entry or bool(says)),
        entry.get("hints", {}),
    )


EXPORTS = tuple(
    map(_export, tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["export"])
)


def known_export(file: str, headers: Sequence[str], cells: Mapping[str, Collection[str]]) -> Export | None:
    """`cells`: the different ones of each column."""
    return next((export for export in EXPORTS if export.fits(file, headers, cells)), None)
