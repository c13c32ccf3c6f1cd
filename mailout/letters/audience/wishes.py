"""What the cells of a column mean for getting mail: told by a known export, or by a person who was asked.

Whatever nobody has answered for never makes a person active.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

from mailout.base.errors import UsageError
from mailout.letters.audience.columns import FIELDS, value_key
from mailout.letters.audience.tables import key

FILE_NAME, SHEET_NAME, FOLDER_NAME = "file name", "sheet name", "folder name"
"""Asked about like columns, with the name as the only value."""

ANY = "\0any"
"""Stands for every value but the empty one. People write it as `*`, and a star itself as `\\*`."""

SHOWN_VALUES = 12
"""More different values than this are not put to a person one by one, but as empty and not empty."""


class Meaning(IntEnum):
    """Rising: of several columns that speak of one person, the highest counts."""

    ACTIVE = 0
    LEFT_OUT = 1  # never said yes, or nobody knows what it says: not imported
    UNSUBSCRIBED = 2
    BOUNCED = 3


Verdicts = Mapping[str, Meaning]
"""By `value_key` of a cell, or ANY."""

EVERYBODY: Verdicts = {"": Meaning.ACTIVE, ANY: Meaning.ACTIVE}
"""The column says nothing about mail: it stays an attribute."""


def meaning(verdicts: Verdicts, cell: str) -> Meaning:
    value = value_key(cell)
    if value in verdicts:
        return verdicts[value]
    return verdicts.get(ANY, Meaning.LEFT_OUT) if value else Meaning.LEFT_OUT


def refused(value: str) -> Meaning:
    """Who has something against mail in a cell said so; who has nothing there never said yes."""
    return Meaning.UNSUBSCRIBED if value else Meaning.LEFT_OUT


def only(yes: Iterable[str], values: Iterable[str]) -> Verdicts:
    """Those with one of these values get mail; of the values that were shown, the others do not."""
    shown = {value_key(value) if value != ANY else ANY for value in values}
    return {value: refused(value) for value in shown} | {
        value if value == ANY else value_key(value): Meaning.ACTIVE for value in yes
    }


def all_but(refusals: Iterable[str]) -> Verdicts:
    return {**EVERYBODY, **{value_key(value): Meaning.UNSUBSCRIBED for value in refusals}}


@dataclass(frozen=True, slots=True)
class ImportQuestion:
    """A column that may say who wants mail: each value and how many rows have it, the most frequent first."""

    column: str
    values: Mapping[str, int]
    hint: str = ""
    refusals: tuple[str, ...] = ()  # values that sound like a no, among many that do not

    @property
    def empty(self) -> int:
        return self.values.get("", 0)

    @property
    def filled(self) -> Mapping[str, int]:
        return {value: n for value, n in self.values.items() if value}

    @property
    def few(self) -> bool:
        """Whether they can be put to a person value by value."""
        return len(self.values) <= SHOWN_VALUES

    @property
    def shown(self) -> Mapping[str, int]:
        """What is put to a person: value by value, or (too many) refusals and whether there is any other.

        `""` is empty.
        """
        if self.few:
            return self.values
        few = self.refusals if len(self.refusals) <= SHOWN_VALUES else ()
        found = {value: self.values[value] for value in few}
        rest = {ANY: sum(self.filled.values()) - sum(found.values())}
        return found | rest | ({"": self.empty} if self.empty else {})

    def choices(self) -> list[tuple[str, Verdicts]]:
        """Short answers in words, and what each means. `everybody` is the first."""
        found = [("everybody", EVERYBODY)]
        if self.filled and self.empty:
            what = next(iter(self.filled)) if len(self.filled) == 1 else "something in it"
            some = list(self.shown if self.few else (ANY, ""))
            found += [
                (f"those with {what}", only([value for value in some if value], some)),
                (f"those without {what if len(self.filled) == 1 else 'anything in it'}", only([""], some)),
            ]
        if self.refusals:
            example = self.refusals[0] + (" …" if len(self.refusals) > 1 else "")
            found.append((f"all but {example}", all_but(self.refusals)))
        return found

    def described(self) -> str:
        """`(empty) 340, x 12`."""
        shown, others = self.shown, [value for value in self.filled if value not in self.shown]
        words = {ANY: "(anything else)"} if shown.keys() - {ANY, ""} else {}
        said = ", ".join(f"{words.get(value, in_words(value))} {n:,}" for value, n in shown.items())
        return said if ANY not in shown else f"{said} ({', '.join(others[:3])} …)"

    def options(self) -> str:
        """What may be added to the command line."""
        if 0 < len(self.refusals) <= SHOWN_VALUES:
            said = [("--no-mail-if", value) for value in self.refusals] + [("--mail-if", "*")]
            said += [("--mail-if", "")] if self.empty else []
            options = " ".join(f"{option} {_quoted(f'{self.column}={value}')}" for option, value in said)
            return f"{options} (all but these), or --ignore-column {_quoted(self.column)}"
        return (
            f"--mail-if '{self.column}=VALUE' (only those with it get mail), --no-mail-if"
            f" '{self.column}=VALUE', or --ignore-column '{self.column}'"
        )


def _quoted(word: str) -> str:
    """As a shell reads it."""
    return "'" + word.replace("'", "'\\''") + "'"


def in_words(value: str) -> str:
    return "(anything)" if value == ANY else value or "(empty)"


def _written(value: str) -> str:
    return "*" if value == ANY else f"\\{value}" if value == "*" else value


def _read(written: str) -> str:
    return ANY if written == "*" else value_key(written.removeprefix("\\") if written == "\\*" else written)


@dataclass(frozen=True, slots=True)
class Answers:
    """What a person says about a file. Can be kept as a file for the next time."""

    columns: Mapping[str, Verdicts] = field(default_factory=dict)  # header → what its values mean
    fields: Mapping[str, str] = field(default_factory=dict)  # header → one of FIELDS
    encoding: str | None = None
    sheet: str | None = None

    def with_column(self, column: str, verdicts: Verdicts) -> Answers:
        return replace(self, columns={**self.columns, column: verdicts})

    @classmethod
    def from_options(
        cls,
        *,
        mail_if: Sequence[tuple[str, str]] = (),
        no_mail_if: Sequence[tuple[str, str]] = (),
        ignored: Sequence[str] = (),
        fields: Mapping[str, str] | None = None,
        encoding: str | None = None,
        sheet: str | None = None,
    ) -> Answers:
        """A value that is named twice, for and against, is against."""
        columns: dict[str, dict[str, Meaning]] = {column: dict(EVERYBODY) for column in ignored}
        for column, written in mail_if:
            columns.setdefault(column, {})[_read(written)] = Meaning.ACTIVE
        for column, written in no_mail_if:
            columns.setdefault(column, {})[_read(written)] = Meaning.UNSUBSCRIBED
        for header, to in (fields or {}).items():
            if to not in FIELDS:
                raise UsageError(
                    f"There is no field `{to}` to map {header} to.", remedy=f"There are: {', '.join(FIELDS)}."
                )
        return cls(columns, fields or {}, encoding, sheet)

    def and_then(self, more: Answers) -> Answers:
        """`more` goes before."""
        return Answers(
            {**self.columns, **more.columns},
            {**self.fields, **more.fields},
            more.encoding or self.encoding,
            more.sheet or self.sheet,
        )

    def as_data(self) -> dict[str, Any]:
        """As it is kept in a file and with the import."""
        columns = {
            column: "everybody"
            if verdicts == EVERYBODY
            else {
                name: sorted(
                    _written(value) for value, said in verdicts.items() if (said is Meaning.ACTIVE) is yes
                )
                for name, yes in (("mail_if", True), ("no_mail_if", False))
            }
            | ({"empty": "unsubscribed"} if verdicts.get("") is Meaning.UNSUBSCRIBED else {})
            for column, verdicts in self.columns.items()
        }
        data = {
            "columns": columns,
            "fields": dict(self.fields),
            "encoding": self.encoding,
            "sheet": self.sheet,
        }
        return {name: value for name, value in data.items() if value}

    @classmethod
    def load(cls, path: Path) -> Answers:
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            columns = data.get("columns", {})
            said = {c: v for c, v in columns.items() if v != "everybody"}
            answers = cls.from_options(
                mail_if=[(c, value) for c, v in said.items() for value in v.get("mail_if", [])],
                no_mail_if=[  # of two kinds of nothing, an answer in words means: never said yes
                    (c, value)
                    for c, v in said.items()
                    for value in v.get("no_mail_if", [])
                    if value or v.get("empty") == "unsubscribed"
                ],
                ignored=[c for c, v in columns.items() if v == "everybody"],
                fields=data.get("fields"),
                encoding=data.get("encoding"),
                sheet=data.get("sheet"),
            )
            return replace(answers, columns={column: answers.columns.get(column, {}) for column in columns})
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise UsageError(
                f"{path} has no answers that can be read: {error}.",
                remedy="Leave --answers out, answer again, and keep them in a new file.",
            ) from None

    def of_columns(self, known: Collection[str]) -> Answers:
        """Under the headers as the file writes them. One that is not there is a typing mistake."""

        def found(column: str) -> str:
            if column in known or column in (FILE_NAME, SHEET_NAME, FOLDER_NAME):
                return column
            if same := [name for name in known if key(name) == key(column)]:
                return same[0]
            raise UsageError(f"The file has no column {column}.", remedy=f"It has: {', '.join(known)}.")

        columns = {found(column): verdicts for column, verdicts in self.columns.items()}
        return replace(self, columns=columns, fields={found(name): to for name, to in self.fields.items()})
