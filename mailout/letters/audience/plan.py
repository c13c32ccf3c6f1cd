"""What an import would do, as a value that the command line prints and a page can show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mailout.base.addresses import IN_WORDS, Dropped
from mailout.base.errors import UsageError
from mailout.letters.audience.wishes import EVERYBODY, Answers, ImportQuestion, in_words, meaning


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """A file understood, nothing written yet. `people`, `left_out`, `merged` make up `rows` and `several`."""

    file: str
    rows: int  # in the file, the blank ones not counted
    sources: tuple[tuple[str, str, int], ...]  # (sheet or file, the known export that it is or "", rows)
    headers: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]  # (a column of the file, what it was taken for)
    attributes: tuple[str, ...]  # all other columns, kept under these names
    people: Mapping[str, int]  # by status
    left_out: Mapping[Dropped, int]
    merged: int  # rows that repeat an address
    several: int  # addresses that stood in a cell with another one
    bad_places: tuple[tuple[int, str], ...]  # (line, what is no OCD id)
    questions: tuple[ImportQuestion, ...]  # answered or not
    answers: Answers
    encoding: str | None
    readings: tuple[tuple[str, str], ...]  # not empty: somebody must say which encoding is right
    says_so: bool  # the file, or an answer about a column of it, says who wants mail

    @property
    def open(self) -> tuple[ImportQuestion, ...]:
        return tuple(one for one in self.questions if one.column not in self.answers.columns)

    def require_answered(self) -> None:
        """Nobody becomes active by not being understood: a question that is open stops the import."""
        if self.readings:
            lines = "; ".join(f"{encoding}: {line}" for encoding, line in self.readings[:4])
            raise UsageError(
                f"{self.file} does not say its encoding. It may read as {lines}.",
                remedy=f"Name the one that reads right, for instance --encoding {self.readings[0][0]}.",
            )
        for one in self.open:
            raise UsageError(
                f"{self.file}: “{one.column}” may say who wants mail: {one.described()}. {one.hint}".strip(),
                remedy=f"Say who should get mail: {one.options()}.",
            )

    def agreement(self) -> str:
        """The one question for a file that says nothing itself; empty: it says who wants mail."""
        active = self.people.get("active", 0)
        if self.says_so or not active:
            return ""
        who = "Did these people" if active > 1 else "Did this person"
        return f"{active:,} of {self.file} would get your mail. {who} agree to that?"

    def summary(self) -> str:
        """`Email Address → email, FNAME → first_name: 1,204 active, 31 unsubscribed, 4 left out`."""
        columns = ", ".join(to if column == to else f"{column} → {to}" for column, to in self.columns)
        counts = [f"{n:,} {status}" for status, n in self.people.items()] or ["nobody"]
        if out := sum(self.left_out.values()):
            counts.append(f"{out:,} left out")
        if self.merged:
            counts.append(f"{self.merged:,} merged")
        return f"{columns}: {', '.join(counts)}"

    def details(self) -> list[str]:
        """What a person should see before saying yes, a line each."""
        lines = [f"{title}: an export of {export}, {n:,} rows" for title, export, n in self.sources if export]
        if len(self.sources) > 1:
            lines += [f"{title}: {n:,} rows" for title, export, n in self.sources if not export]
        lines += [f"“{column}”: {said}" for column, said in self.decided().items()]
        if self.attributes:
            lines.append("Kept as attributes: " + ", ".join(self.attributes))
        if self.several:
            lines.append(f"{self.several:,} more addresses shared a cell with another one: each is imported.")
        if self.bad_places:
            line, value = self.bad_places[0]
            lines.append(
                f"{len(self.bad_places):,} places are no OCD id: not imported (line {line:,}: {value})"
            )
        lines += [f"{n:,} left out: {IN_WORDS[reason]}" for reason, n in self.left_out.items()]
        return lines

    def decided(self) -> dict[str, str]:
        """Of each column that was answered for, what its values were taken for, in words."""
        found = {}
        for one in self.questions:
            verdicts = self.answers.columns.get(one.column)
            if verdicts == EVERYBODY:
                found[one.column] = "says nothing about mail"
            elif verdicts is not None:
                shown = one.shown.items()
                said = (f"{in_words(v)} → {MEANS[meaning(verdicts, v)]} ({n:,})" for v, n in shown)
                found[one.column] = ", ".join(said)
        return found

    def decisions(self) -> dict[str, Any]:
        """What is kept with the import, so that everybody can see on whose word somebody became active."""
        exports = {title: export for title, export, _ in self.sources if export}
        return {"exports": exports, "columns": self.decided(), "answers": self.answers.as_data()}

    def counts(self) -> dict[str, int]:
        return {
            "rows": self.rows,
            **self.people,
            "left_out": sum(self.left_out.values()),
            "merged": self.merged,
        }

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "file": self.file,
            "rows": self.rows,
            "encoding": self.encoding,
            "columns": [{"column": column, "field": to} for column, to in self.columns],
            "attributes": list(self.attributes),
            "people": dict(self.people),
            "left_out": {reason.value: n for reason, n in self.left_out.items()},
            "merged": self.merged,
            "questions": [{"column": one.column, "values": dict(one.values)} for one in self.open],
            "bad_places": [{"line": line, "value": value} for line, value in self.bad_places],
            **self.decisions(),
        }


MEANS = ("gets mail", "left out", "unsubscribed", "bounced")
