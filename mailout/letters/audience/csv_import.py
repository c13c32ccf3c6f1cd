"""Subscribers from a file as other products export it: read, recognised and checked, nothing written yet.

The whole file is checked before the first row is handed on, so duplicates merge wherever they stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import polars as pl

from mailout.base.addresses import TRIM, Dropped
from mailout.base.errors import UsageError
from mailout.letters.audience.columns import (
    EMAIL_HEADERS,
    FILE_NAME,
    MARKS,
    Column,
    RowMarks,
    file_name_meaning,
    looks_like_a_row,
    recognise,
)
from mailout.letters.audience.frame import BATCH, REASON, STATUSES, check, merge
from mailout.letters.audience.marks import Meaning
from mailout.letters.audience.plan import Plan, Recognised, StatusWord
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.audience.table_file import open_table
from mailout.letters.audience.tables import ESCAPED, Table, key

ATTRIBUTE = "attribute "
"""Before the name of a column that is not ours, so that a file's own `line` or `reason` is no trouble."""

NAME = f"{ATTRIBUTE}name"
NAMED = r"^([^<]*\S[^<]*)<[^<>]*@[^<>]*>"
"""An address with a name before it."""

NAMES = ("name", "first_name", "last_name")
"""Kept as attributes under these names, whatever the file calls them."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What a person says about a file, where the recognition is not enough."""

    fields: Mapping[str, str] = field(default_factory=dict)  # header → field
    statuses: Mapping[str, Meaning] = field(default_factory=dict)  # word of the file → what it means
    encoding: str | None = None
    sheet: str | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that was not imported; `line` is where it ends in the file."""

    line: int
    email: str
    reason: Dropped


@dataclass(frozen=True, slots=True)
class CsvImport:
    """A file that has been read: who is in it, and who was dropped and why."""

    plan: Plan
    people: int  # how many `batches` yields
    dropped: Mapping[Dropped, int]  # duplicates too: they are merged, not rejected
    _people: pl.DataFrame
    _rejected: pl.DataFrame

    def batches(self, size: int = 5_000) -> Iterator[list[SubscriberRow]]:
        """Everybody, by `email_norm`, in rows as a store imports them. Refused while a status is unknown."""
        self.plan.require_understood()
        attributes = [name for name in self._people.columns if name.startswith(ATTRIBUTE)]
        for part in self._people.iter_slices(size):
            yield [_subscriber(row, attributes) for row in part.iter_rows(named=True)]

    def rejects(self) -> Iterator[Reject]:
        """In the order of the file."""
        for line, email, reason in self._rejected.iter_rows():
            yield Reject(line, email, Dropped(reason))


def read_subscribers(path: Path, choices: Choices | None = None) -> CsvImport:
    """Read and check a file; a UsageError says what to do about one that cannot be read."""
    choices = choices or Choices()
    asked = {key(header) for header, to in choices.fields.items() if to == "email"}
    table = open_table(path, EMAIL_HEADERS | asked, encoding=choices.encoding, sheet=choices.sheet)
    if looks_like_a_row(table.header):
        raise _no_email(path, table.header, remedy="Its first line is a row: put a header above it.")
    raw = _frame(table)
    columns = recognise(table.header, partial(_cells, raw), choices.fields)
    if not any(column.field == "email" for column in columns):
        raise _no_email(path, table.header, remedy='Say which one holds the addresses: --map "COLUMN=email".')
    of_file = None if choices.fields.get(FILE_NAME) == "ignore" else file_name_meaning(path.stem)
    marks = RowMarks(columns, choices.statuses, of_file)
    rejected: list[pl.DataFrame] = []
    names = _names(columns)
    emails = next(str(column.position) for column in columns if column.field == "email")
    with_brackets = raw[emails].filter(raw[emails].str.contains("<", literal=True))
    named = bool(with_brackets.str.contains(NAMED).any())

    def checked() -> Iterator[pl.DataFrame]:
        for part in (raw.clear(), *raw.iter_slices(BATCH)):
            batch = _check(part, marks.read(part), names, named)
            dropped = batch.filter(pl.col("reason").is_not_null())
            rejected.append(dropped.select("line", "email", "reason"))
            yield batch.drop("line")

    audience = merge(checked())
    return CsvImport(
        plan=_plan(path, table, columns, names, marks, audience.frame, audience.dropped),
        people=audience.frame.height,
        dropped=audience.dropped,
        _people=audience.frame,
        _rejected=pl.concat(rejected),
    )


def _no_email(path: Path, header: Sequence[str], remedy: str) -> UsageError:
    return UsageError(f"{path} has no column `email`. It has: {', '.join(header)}.", remedy=remedy)


def _frame(table: Table) -> pl.DataFrame:
    """All rows as text: columns "0", "1", …, where each ends, and whether it is wider than the header."""
    width = len(table.header)
    schema = {"line": pl.Int64, "ragged": pl.Boolean} | {str(at): pl.String for at in range(width)}
    padding = [""] * width

    def rows() -> Iterator[list[Any]]:
        for line, cells in table.rows:
            if any(cells):
                if len(cells) == width:
                    yield [line, False, *cells]
                else:
                    yield [line, any(cells[width:]), *(cells + padding)[:width]]

    lines = rows()
    parts = [pl.DataFrame(schema=schema)]
    while batch := list(islice(lines, BATCH)):
        parts.append(pl.DataFrame(list(zip(*batch, strict=True)), schema=schema))
    return pl.concat(parts).with_columns(pl.col(pl.String).str.replace(ESCAPED, "$1"))


def _cells(raw: pl.DataFrame, at: int) -> list[str]:
    return raw[str(at)].drop_nulls().unique().to_list()


def _names(columns: Sequence[Column]) -> dict[int, str]:
    """Under what name each column is kept. Equal headers that mean nothing to us get a number."""
    used: set[str] = set()
    names = {}
    for column in columns:
        if column.field in MARKS or column.field == "ignore":
            continue
        if column.field not in ("attribute", *NAMES):
            names[column.position] = column.field
            continue
        name = column.header if column.field == "attribute" else column.field
        name = name or f"column {column.position + 1}"
        numbered = (f"{name} {number}" for number in count(2))
        free = next(one for one in chain([name], numbered) if one not in used)
        used.add(free)
        names[column.position] = ATTRIBUTE + free
    return names


_LEFT_OUT = {
    int(Meaning.UNCONFIRMED): Dropped.UNCONFIRMED.value,
    int(Meaning.UNKNOWN): Dropped.BAD_STATUS.value,
    int(Meaning.SKIPPED): Dropped.BAD_STATUS.value,
}
_STATUS = {int(Meaning.UNSUBSCRIBED): "unsubscribed", int(Meaning.BOUNCED): "bounced"}


def _check(rows: pl.DataFrame, marks: pl.Series, names: Mapping[int, str], named: bool) -> pl.DataFrame:
    """Checked rows with their lines, our columns, and those that are kept as attributes."""
    mark = pl.Series("mark", marks, pl.Int8)
    frame = rows.select(
        "line",
        "ragged",
        *(pl.col(str(at)).alias(name) for at, name in names.items()),
        status=mark.replace_strict(_STATUS, default="active", return_dtype=pl.String),
        left=mark.replace_strict(_LEFT_OUT, default=None, return_dtype=pl.String).cast(REASON),
    )
    checked = check(_bare_addresses(frame, named))
    # Of a row whose cells have slipped, only that somebody wants no mail is believed.
    ragged = pl.col("ragged") & (pl.col("status") == "active")
    return checked.with_columns(
        reason=pl.when(ragged & pl.col("reason").is_null())
        .then(pl.lit(Dropped.BAD_ROW.value, REASON))
        .otherwise(pl.coalesce("reason", "left"))
    ).drop("ragged", "left")


def _bare_addresses(rows: pl.DataFrame, named: bool) -> pl.DataFrame:
    """`Ana <ana@example.org>`, `mailto:ana@example.org?subject=Hi`, `a@example.org ::: b@example.org`."""
    odd = rows["email"].str.contains(r"[<>'\" :;,]").arg_true()
    written = rows["email"].gather(odd)
    bare = (
        written.str.replace(r"(?s)^.*<([^<>]*)>[^<>]*$", "$1")
        .str.split(" ::: ")
        .list.first()
        .str.strip_chars(TRIM + "'\"<>;,")
        .str.replace(r"(?i)^mailto:([^?]*).*$", "$1")
    )
    changes = [rows["email"].scatter(odd, bare)]
    if named:
        known = (
            rows[NAME] if NAME in rows.columns else pl.repeat("", rows.height, dtype=pl.String, eager=True)
        )
        before = known.gather(odd)
        found = written.str.extract(f"(?s){NAMED}").str.strip_chars(TRIM + "'\"").fill_null("")
        changes.append(known.scatter(odd, before.zip_with(before != "", found)).alias(NAME))
    return rows.with_columns(changes)


def _plan(
    path: Path,
    table: Table,
    columns: Sequence[Column],
    names: Mapping[int, str],
    marks: RowMarks,
    people: pl.DataFrame,
    dropped: Mapping[Dropped, int],
) -> Plan:
    recognised = [
        Recognised(column.header, column.field)
        for column in columns
        if column.field not in ("attribute", "ignore")
    ]
    if marks.of_file:
        recognised.append(Recognised(f"{FILE_NAME} {path.name}", f"everybody_{marks.of_file.name.lower()}"))
    kept = [names[column.position] for column in columns if column.field == "attribute"]
    counts = dict(people["status"].cast(pl.String).value_counts().iter_rows())
    return Plan(
        file=path.name,
        encoding=table.encoding,
        sample=table.sample,
        sheet=table.sheet,
        rows=people.height + sum(dropped.values()),
        columns=tuple(recognised),
        attributes=tuple(name.removeprefix(ATTRIBUTE) for name in kept),
        people={status: counts[status] for status in STATUSES if status in counts},
        left_out={reason: n for reason, n in dropped.items() if reason is not Dropped.DUPLICATE},
        merged=dropped.get(Dropped.DUPLICATE, 0),
        words=tuple(
            StatusWord(column, word, means, n)
            for (column, word, means), n in sorted(marks.words.items(), key=lambda one: (-one[1], one[0]))
        ),
    )


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
        attributes={name.removeprefix(ATTRIBUTE): row[name] for name in attributes if row[name]},
    )


def _one_line(text: str | None) -> str | None:
    """A sender's name becomes a header, and no header carries a line break."""
    return (text and " ".join(text.split())) or None


@lru_cache(maxsize=1024)
def _values(joined: str | None) -> tuple[str, ...]:
    """`a | b;a` → ("a", "b"). Remembered, since many people have the same lists."""
    parts = (part.strip(TRIM) for part in re.split(r"[|;]", joined or ""))
    return tuple(dict.fromkeys(part for part in parts if part))
