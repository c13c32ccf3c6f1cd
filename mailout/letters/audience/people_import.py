"""People from a file as other products export it: read, asked about, checked, nothing written yet.

The whole file is checked before the first row is handed on, so duplicates merge wherever they stand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl

from mailout.base.addresses import TRIM, Dropped
from mailout.base.errors import UsageError
from mailout.letters.audience.columns import (
    ATTRIBUTE,
    DROP,
    EMAIL_HEADERS,
    NAMES,
    FileColumn,
    looks_like_a_row,
    may_hold_wishes,
    name_may_tell,
    recognise,
    unique,
)
from mailout.letters.audience.exports import Export, known_export
from mailout.letters.audience.frame import FRAME_ROWS, REASON, STATUSES, check, merge
from mailout.letters.audience.places import split_places
from mailout.letters.audience.plan import ImportPlan
from mailout.letters.audience.port import ImportCounts, ImportRecord, SubscriberRow, Subscribers
from mailout.letters.audience.table_file import open_tables
from mailout.letters.audience.tables import ESCAPED, FileTable, key
from mailout.letters.audience.wishes import (
    EVERYBODY,
    FILE_NAME,
    FOLDER_NAME,
    SHEET_NAME,
    Answers,
    ImportQuestion,
    Meaning,
    Verdicts,
    meaning,
)

ATTRIBUTE_PREFIX = "attribute "
"""Before the name of a column that is not ours, so that a file's own `line` or `reason` is no trouble."""

NAME = f"{ATTRIBUTE_PREFIX}name"
NAMED = r"^([^<]*\S[^<]*)<[^<>]*@[^<>]*>"
"""An address with a name before it."""

SEVERAL = r"@.*[\s;,|/].*@"
"""Two addresses in one cell, perhaps."""
ONE = r"[^\s<>;,|/\"'()]+@[^\s<>;,|/\"'()]+"

MARKS = TRIM + "\u00ad\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069'\"<>;,"
"""What may stand around an address without being part of it, seen or not."""

BAD_PLACE = "bad_place"
"""Beside `Dropped`: the person is imported, and what stands there as a place is not."""


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that was not imported, or a place of it; `line` is where it ends in the file."""

    line: int
    email: str
    reason: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class PeopleImport:
    """A file that has been read: who is in it, and who was dropped and why."""

    plan: ImportPlan
    people: int  # how many `batches` yields
    dropped: Mapping[Dropped, int]  # duplicates too: they are merged, not rejected
    rejects: Sequence[Reject]  # in the order of the file
    _people: pl.DataFrame

    def batches(self, size: int = 5_000) -> Iterator[list[SubscriberRow]]:
        """Everybody, by `email_norm`, in rows as a store imports them. Refused while a question is open."""
        self.plan.require_answered()
        attributes = [name for name in self._people.columns if name.startswith(ATTRIBUTE_PREFIX)]
        for part in self._people.iter_slices(size):
            yield [_subscriber(row, attributes) for row in part.iter_rows(named=True)]


def import_people(
    store: Subscribers,
    found: PeopleImport,
    *,
    by: str,
    agreed: str = "",
    list_key: str | None = None,
    progress: Callable[[int], object] = lambda done: None,
) -> tuple[str, ImportCounts]:
    """Written down first with what was decided, so that it can be taken back. `agreed`: who said so."""
    found.plan.require_answered()
    id = str(uuid4())
    decisions = found.plan.decisions() | ({"agreed": agreed} if agreed else {})
    decisions |= {"list": list_key} if list_key else {}
    store.begin_import(ImportRecord(id, by, found.plan.file, decisions, found.plan.counts()))
    totals = ImportCounts()
    for batch in found.batches():
        if list_key is not None:
            batch = [replace(row, lists=(*row.lists, list_key)) for row in batch]
        totals += store.import_subscribers(batch, import_id=id)
        progress(len(batch))
    return id, totals


def read_people(path: Path, answers: Answers | None = None) -> PeopleImport:
    """Read and check a file; a UsageError says what to do about one that cannot be read."""
    answers = answers or Answers()
    asked = {key(header) for header, to in answers.fields.items() if to == "email"}
    tables = open_tables(path, EMAIL_HEADERS | asked, encoding=answers.encoding, sheet=answers.sheet)
    sources, others = [], list[str]()
    for table in tables:
        if (source := _source(path, table, answers)) is not None:
            sources.append(source)
        others += table.header
    if not sources:
        raise UsageError(
            f"{path} has no column `email`. It has: {', '.join(others)}.",
            remedy='Say which one holds the addresses: --map "COLUMN=email".',
        )
    headers = tuple(dict.fromkeys(name for one in sources for name in one.headers))
    answers = answers.of_columns(headers)
    questions = _questions(sources, several=len(sources) > 1)
    batches, rejects = _checked(sources, questions, answers)
    several = sum(batch.height for batch in batches) - sum(source.raw.height for source in sources)
    audience = merge(batch.drop("line") for batch in batches)
    statuses = dict(audience.frame["status"].cast(pl.String).value_counts().iter_rows())
    readings = tuple(next((one.table.readings for one in sources if one.table.readings), ()))
    plan = ImportPlan(
        file=path.name,
        rows=audience.frame.height + sum(audience.dropped.values()) - several,
        sources=tuple((one.title, one.export.name if one.export else "", one.raw.height) for one in sources),
        headers=headers,
        columns=tuple(dict.fromkeys(pair for one in sources for pair in one.recognised())),
        attributes=tuple(
            name.removeprefix(ATTRIBUTE_PREFIX)
            for name in audience.frame.columns
            if name.startswith(ATTRIBUTE_PREFIX)
        ),
        people={status: statuses[status] for status in STATUSES if status in statuses},
        left_out={why: n for why, n in audience.dropped.items() if why is not Dropped.DUPLICATE},
        merged=audience.dropped.get(Dropped.DUPLICATE, 0),
        several=several,
        bad_places=tuple((one.line, one.value) for one in rejects if one.reason == BAD_PLACE),
        questions=tuple(questions.values()),
        answers=answers,
        encoding=sources[0].table.encoding,
        readings=readings,
        says_so=all(one.says_so(questions, answers) for one in sources),
    )
    return PeopleImport(plan, audience.frame.height, audience.dropped, rejects, audience.frame)


def _checked(
    sources: Sequence[_Source], questions: Mapping[str, ImportQuestion], answers: Answers
) -> tuple[list[pl.DataFrame], list[Reject]]:
    """Every row with its status or the reason why it goes no further; and what is not imported, by line."""
    decided = {one for one in questions if answers.columns.get(one, EVERYBODY) != EVERYBODY}
    rejects: list[Reject] = []
    batches = []
    for source in sources:
        for part in (source.raw.clear(), *source.raw.iter_slices(FRAME_ROWS)):
            rows = source.frame(part, source.meanings(part, questions, answers), decided)
            batches.append(_check(_bare(_apart(_places(rows, rejects)))))
    batches = _without_doubt(batches)
    for batch in batches:
        dropped = batch.filter(pl.col("reason").is_not_null()).select("line", "email", "reason")
        rejects.extend(Reject(*row) for row in dropped.iter_rows())
    return batches, sorted(rejects, key=lambda one: one.line)


# ── One table of the file ──


@dataclass(frozen=True, slots=True)
class _Source:
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

    def names_that_tell(self, several: bool) -> Iterator[tuple[str, str]]:
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
            cells = self.raw[str(column.position)]
            asks = column.field == ATTRIBUTE and column.header not in known
            if asks and may_hold_wishes(column.header, cells.unique().to_list()):
                yield column

    def verdicts(
        self, questions: Mapping[str, ImportQuestion], answers: Answers
    ) -> Iterator[tuple[FileColumn, Verdicts]]:
        """Of each column that speaks of wishes: a person's, else the export's, else none: nobody's."""
        for column in self.columns:
            known = self.export.says.get(column.header) if self.export else None
            if column.field == ATTRIBUTE or known is not None:
                if (said := answers.columns.get(column.header)) is not None:
                    yield column, said
                elif known is not None or column.header in questions:
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
        first = next(column.position for column in self.columns if column.field == "email")
        said = {*decided, *(self.export.says if self.export else ())}
        names: dict[int, str] = {}
        for column in self.columns:
            if column.position == first or column.field == DROP or column.header in said:
                continue
            name = column.field if column.field in NAMES else column.header
            while ATTRIBUTE_PREFIX + name in names.values():  # `Full name` and `name`
                name += " 2"
            ours = column.field not in (ATTRIBUTE, "email", *NAMES)
            names[column.position] = column.field if ours else ATTRIBUTE_PREFIX + name
        return names

    def recognised(self) -> Iterator[tuple[str, str]]:
        first = next(column for column in self.columns if column.field == "email")
        for column in sorted(self.columns, key=lambda column: column.position):
            if column.field not in (ATTRIBUTE, DROP):
                yield (
                    column.header,
                    column.field if column.field != "email" or column == first else "email if empty",
                )


def _source(path: Path, table: FileTable, answers: Answers) -> _Source | None:
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
    return _Source(table, headers, raw, columns, export, file.name, file.parent.name)


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


def _questions(sources: Sequence[_Source], several: bool) -> dict[str, ImportQuestion]:
    """By column, over all tables: the most frequent values first."""
    values: dict[str, Counter[str]] = {}
    hints: dict[str, str] = {}
    for source in sources:
        for named, name in source.names_that_tell(several):
            values.setdefault(named, Counter())[name] += source.raw.height
        for column in source.wishes():
            counts = source.raw[str(column.position)].str.strip_chars(TRIM).value_counts()
            values.setdefault(column.header, Counter()).update(dict(counts.iter_rows()))
            hints |= source.export.hints if source.export else {}
    return {
        name: ImportQuestion(name, _spelled_alike(counted), hints.get(name, ""))
        for name, counted in values.items()
    }


def _spelled_alike(counted: Counter[str]) -> dict[str, int]:
    """`Yes` and `yes` are one value, in its most frequent spelling."""
    found: dict[str, tuple[str, int]] = {}
    for value, n in sorted(counted.items(), key=lambda one: (-one[1], one[0])):
        spelled, before = found.get(value.casefold(), (value, 0))
        found[value.casefold()] = (spelled, before + n)
    return dict(sorted(found.values(), key=lambda one: (-one[1], one[0])))


# ── Rows ──


def _apart(rows: pl.DataFrame) -> pl.DataFrame:
    """A row for each address: `a@example.org; b@example.org` are two people."""
    several = pl.col("email").str.contains(SEVERAL)
    if not rows.select(several.any()).item():
        return rows
    found = pl.col("email").str.extract_all(ONE).list.unique(maintain_order=True)
    split = pl.when(several & (found.list.len() > 1)).then(found).otherwise(pl.concat_list("email"))
    return rows.with_columns(split).explode("email")


def _bare(rows: pl.DataFrame) -> pl.DataFrame:
    """The addresses of `Ana <ana@example.org>` and `mailto:ana@example.org?subject=Hi`, and the name."""
    odd = (~rows["email"].str.contains(r"^[A-Za-z0-9._%+@-]*$")).arg_true()
    written = rows["email"].gather(odd)
    bare = (
        written.str.replace(r"(?s)^.*<([^<>]*)>[^<>]*$", "$1")
        .str.strip_chars(MARKS)
        .str.replace(r"(?i)^mailto:([^?]*).*$", "$1")
    )
    found = written.str.extract(f"(?s){NAMED}").str.strip_chars(MARKS).fill_null("")
    rows = rows.with_columns(rows["email"].scatter(odd, bare))
    if not (found != "").any():
        return rows
    known = rows[NAME] if NAME in rows.columns else pl.repeat("", rows.height, dtype=pl.String, eager=True)
    before = known.gather(odd)
    return rows.with_columns(known.scatter(odd, before.zip_with(before != "", found)).alias(NAME))


def _places(rows: pl.DataFrame, rejects: list[Reject]) -> pl.DataFrame:
    if "ocd_ids" not in rows.columns:
        return rows
    split = {cell: split_places(cell) for cell in rows["ocd_ids"].unique()}
    bad = [cell for cell, (_, wrong) in split.items() if wrong]
    for line, email, cell in (
        rows.filter(pl.col("ocd_ids").is_in(bad)).select("line", "email", "ocd_ids").iter_rows()
    ):
        rejects.extend(Reject(line, email, BAD_PLACE, wrong) for wrong in split[cell][1])
    joined = {cell: "|".join(good) for cell, (good, _) in split.items()}
    return rows.with_columns(pl.col("ocd_ids").replace_strict(joined, return_dtype=pl.String))


_STATUS = {int(Meaning.UNSUBSCRIBED): "unsubscribed", int(Meaning.BOUNCED): "bounced"}


def _check(rows: pl.DataFrame) -> pl.DataFrame:
    """Checked, with the status that the row's meaning is, or the reason why it goes no further."""
    says = pl.col("meaning")
    checked = check(
        rows.with_columns(
            status=says.replace_strict(_STATUS, default="active", return_dtype=pl.String),
            out=pl.when(says == int(Meaning.LEFT_OUT)).then(pl.lit(Dropped.UNCONFIRMED.value, REASON)),
        )
    )
    # Of a row whose cells have slipped, only that somebody wants no mail is believed.
    slipped = pl.col("ragged") & (pl.col("status") == "active")
    return checked.with_columns(
        reason=pl.when(slipped & pl.col("reason").is_null())
        .then(pl.lit(Dropped.BAD_ROW.value, REASON))
        .otherwise(pl.coalesce("reason", "out"))
    ).drop("ragged", "out", "meaning")


def _without_doubt(batches: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """With the same columns. Who is left out by one row does not become active by another."""
    empty = pl.concat([batch.clear() for batch in batches], how="diagonal")
    out = pl.col("reason") == Dropped.UNCONFIRMED.value
    doubted = pl.concat([batch.filter(out)["email_norm"] for batch in batches]).drop_nulls().unique()
    again = pl.col("email_norm").is_in(doubted.implode()) & (pl.col("status") == "active")
    reason = pl.when(again & pl.col("reason").is_null()).then(pl.lit(Dropped.UNCONFIRMED.value, REASON))
    alike = (pl.concat([empty, batch], how="diagonal") for batch in batches)
    return [batch.with_columns(reason=reason.otherwise("reason")) for batch in alike]


def _subscriber(row: Mapping[str, Any], attributes: Sequence[str]) -> SubscriberRow:
    return SubscriberRow(
        email=row["email"],
        email_norm=row["email_norm"],
        status=row["status"],
        from_name=_one_line(row.get("from_name")),
        bounce_type=row.get("bounce_type") or None,
        bounce_subtype=row.get("bounce_subtype") or None,
        ocd_ids=_values(row.get("ocd_ids")),
        lists=_values(row.get("lists")),
        attributes={name.removeprefix(ATTRIBUTE_PREFIX): row[name] for name in attributes if row[name]},
    )


def _one_line(text: str | None) -> str | None:
    """A sender's name becomes a header, and no header carries a line break."""
    return (text and " ".join(text.split())) or None


@lru_cache(maxsize=1024)
def _values(joined: str | None) -> tuple[str, ...]:
    """`a | b;a` → ("a", "b"). Remembered, since many people have the same lists."""
    parts = (part.strip(TRIM) for part in re.split(r"[|;]", joined or ""))
    return tuple(dict.fromkeys(part for part in parts if part))
