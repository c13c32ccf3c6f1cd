"""A table of a file with people in it: what its columns are, and what it says of their wishes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import polars as pl

from mailout.base.addresses import TRIM
from mailout.letters.audience.columns import (
    ATTRIBUTE,
    DROP,
    NAMES,
    PERSONAL,
    SILENT,
    FileColumn,
    looks_like_a_row,
    may_hold_wishes,
    name_may_tell,
    recognise,
    refusals,
    unique,
)
from mailout.letters.audience.exports import Export, known_export
from mailout.letters.audience.frame import FRAME_ROWS
from mailout.letters.audience.people_rows import ATTRIBUTE_PREFIX, MARKS
from mailout.letters.audience.tables import ESCAPED, FileTable, key
from mailout.letters.audience.wishes import (
    EVERYBODY,
    FILE_NAME,
    FOLDER_NAME,
    SHEET_NAME,
    SHOWN_VALUES,
    Answers,
    ImportQuestion,
    Meaning,
    Verdicts,
    meaning,
)


@dataclass(frozen=True, slots=True)
class PeopleTable:
    """A table with people in it, what its columns are, and the export that it is, if it is one."""

    table: FileTable
    headers: Sequence[str]
    raw: pl.DataFrame  # columns "0", "1", …, `line`, and `ragged`: wider than the header
    columns: Sequence[FileColumn]
    export: Export | None
    file: str
    folder: str

    @property
    def title(self) -> str:
        return self.table.sheet or self.file

    @property
    def address(self) -> FileColumn:
        """The others are looked at where it is empty."""
        return next(column for column in self.columns if column.field == "email")

    def names_that_tell(self, *, several: bool) -> Iterator[tuple[str, str]]:
        """What the table is called, where that may tell that its people do not want mail."""
        if self.export is not None:
            return
        if name_may_tell(Path(self.file).stem) or (several and self.table.sheet is None):
            yield FILE_NAME, self.file
        if self.table.sheet is not None and (several or name_may_tell(self.table.sheet)):
            yield SHEET_NAME, self.table.sheet
        if name_may_tell(self.folder):
            yield FOLDER_NAME, self.folder

    def wishes(self) -> Iterator[FileColumn]:
        known = (self.export.headers - self.export.hints.keys()) | self.export.own if self.export else ()
        for column in self.columns:
            if column.field in SILENT or column.header in known or column == self.address:
                continue
            if may_hold_wishes(column, self.raw[str(column.position)].unique().to_list()):
                yield column

    def verdicts(
        self, questions: Mapping[str, ImportQuestion], answers: Answers
    ) -> Iterator[tuple[FileColumn, Verdicts]]:
        """Of each column that speaks of wishes: a person's, else the export's, else none: nobody's."""
        for column in self.columns:
            known = self.export.says.get(column.header) if self.export else None
            if (said := answers.columns.get(column.header)) is not None:
                yield column, said
            elif known is not None or (column.header in questions and column != self.address):
                yield column, known or {}

    def meanings(
        self, rows: pl.DataFrame, questions: Mapping[str, ImportQuestion], answers: Answers
    ) -> pl.Series:
        """The strongest of each row."""
        whole = self.export.everybody if self.export else Meaning.ACTIVE
        for column, name in self.names_that_tell(several=True):
            if column in questions:
                whole = max(whole, meaning(answers.columns.get(column, {}), name))
        found = [pl.repeat(int(whole), rows.height, dtype=pl.Int8, eager=True).alias("")]
        for at, verdicts in self.verdicts(questions, answers):
            cells = rows[str(at.position)]
            means = {cell: int(meaning(verdicts, cell)) for cell in cells.unique()}
            said = cells.replace_strict(means, default=int(Meaning.LEFT_OUT), return_dtype=pl.Int8)
            found.append(said.alias(str(at.position)))
        return pl.DataFrame(found).max_horizontal().alias("meaning")

    def says_so(self, questions: Mapping[str, ImportQuestion], answers: Answers) -> bool:
        """Whether the file, or an answer about a column of it, says who wants mail."""
        if self.export is not None and self.export.consent:
            return True
        said = [verdicts for _, verdicts in self.verdicts(questions, answers) if verdicts != EVERYBODY]
        return self.export is None and bool(said)

    def frame(self, rows: pl.DataFrame, meanings: pl.Series, decided: Collection[str]) -> pl.DataFrame:
        """Our columns, and those that are kept as attributes. Of several addresses the first one."""
        emails = [pl.col(str(c.position)) for c in self.columns if c.field == "email"]
        filled = [pl.when(one.str.strip_chars(MARKS) != "").then(one) for one in emails]
        return rows.select(
            "line",
            "ragged",
            *(pl.col(str(at)).alias(name) for at, name in self.kept(decided).items()),
            pl.coalesce([*filled, pl.lit("")]).alias("email"),
            meanings,
        )

    def kept(self, decided: Collection[str]) -> dict[int, str]:
        """Under what name each column is kept; what says who wants mail is not."""
        said = {*decided, *(self.export.says if self.export else ())}
        names: dict[int, str] = {}
        for column in self.columns:
            if column == self.address or column.field == DROP:
                continue
            if column.header in said and column.field == ATTRIBUTE:  # a name or a list is both
                continue
            name = column.field if column.field in NAMES else column.header
            while ATTRIBUTE_PREFIX + name in names.values():  # `Full name` and `name`
                name += " 2"
            ours = column.field not in (ATTRIBUTE, "email", *NAMES)
            names[column.position] = column.field if ours else ATTRIBUTE_PREFIX + name
        return names

    def recognised(self) -> Iterator[tuple[str, str]]:
        for column in sorted(self.columns, key=lambda column: column.position):
            if column.field not in (ATTRIBUTE, DROP):
                yield (
                    column.header,
                    column.field if column.field != "email" or column == self.address else "email if empty",
                )


def people_table(path: Path, table: FileTable, answers: Answers) -> PeopleTable | None:
    """None: nobody's addresses are in it, as on a cover sheet."""
    header, rows = list(table.header), table.rows
    if looks_like_a_row(header):
        header, rows = [""] * len(header), chain([(1, list(table.header))], rows)
    raw = _frame(header, rows)
    headers = unique(header)
    cells = {name: raw[str(at)].unique().to_list() for at, name in enumerate(headers)}
    fields = {
        name: to for header, to in answers.fields.items() for name in headers if key(name) == key(header)
    }
    columns = recognise(headers, lambda at: cells[headers[at]], fields)
    if not any(column.field == "email" for column in columns):
        return None
    file = path.absolute() if table.file == str(path) else Path(table.file)  # of an archive: its own
    export = known_export(file.name, headers, cells)
    return PeopleTable(table, headers, raw, columns, export, file.name, file.parent.name)


def _frame(header: Sequence[str], lines: Iterator[tuple[int, list[str]]]) -> pl.DataFrame:
    width = len(header)
    schema = {"line": pl.Int64, "ragged": pl.Boolean} | {str(at): pl.String for at in range(width)}
    padding = [""] * width

    def rows() -> Iterator[list[Any]]:
        for line, cells in lines:
            if any(cells) and cells != header:  # two exports may have been put into one file
                if len(cells) == width:
                    yield [line, False, *cells]
                else:
                    yield [line, any(cells[width:]), *(cells + padding)[:width]]

    given = rows()
    parts = [pl.DataFrame(schema=schema)]
    while batch := list(islice(given, FRAME_ROWS)):
        parts.append(pl.DataFrame(list(zip(*batch, strict=True)), schema=schema))
    return pl.concat(parts).with_columns(pl.col(pl.String).str.replace(ESCAPED, "$1"))


def questions_about(tables: Sequence[PeopleTable]) -> dict[str, ImportQuestion]:
    """By column, over all tables: the most frequent values first."""
    values: dict[str, Counter[str]] = {}
    hints: dict[str, str] = {}
    personal: set[str] = set()
    for one in tables:
        for named, name in one.names_that_tell(several=len(tables) > 1):
            values.setdefault(named, Counter())[name] += one.raw.height
        for column in one.wishes():
            counts = one.raw[str(column.position)].str.strip_chars(TRIM).value_counts()
            values.setdefault(column.header, Counter()).update(dict(counts.iter_rows()))
            hints |= one.export.hints if one.export else {}
            personal |= {column.header} if column.field in PERSONAL else set()
    return {
        name: _question(name, _spelled_alike(counted), hints.get(name, ""), personal=name in personal)
        for name, counted in values.items()
    }


def _question(name: str, values: Mapping[str, int], hint: str, *, personal: bool) -> ImportQuestion:
    """Of too many to be shown, those for which it is asked are not left to be searched for."""
    many = personal or len(values) > SHOWN_VALUES
    return ImportQuestion(name, values, hint, tuple(refusals(values)) if many else ())


def _spelled_alike(counted: Counter[str]) -> dict[str, int]:
    """`Yes` and `yes` are one value, in its most frequent spelling."""
    found: dict[str, tuple[str, int]] = {}
    for value, n in sorted(counted.items(), key=lambda one: (-one[1], one[0])):
        spelled, before = found.get(value.casefold(), (value, 0))
        found[value.casefold()] = (spelled, before + n)
    return dict(sorted(found.values(), key=lambda one: (-one[1], one[0])))
