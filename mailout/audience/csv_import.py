"""Subscribers from a CSV file as people export it: any of three separators, a BOM, columns in any order.

The whole file is checked before the first row is handed on, so duplicates merge wherever they stand.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

import polars as pl

from mailout.audience.addresses import TRIM, Dropped
from mailout.audience.frame import BATCH, JOINED, OF_THE_STATUS, REASON, check, merge
from mailout.errors import UsageError
from mailout.ports import SubscriberRow

KNOWN = frozenset({"email", "status", "from_name"}) | OF_THE_STATUS | JOINED
ALSO_CALLED = {"list": "lists"}
ATTRIBUTE = "attribute "
"""Before the name of a column that is not ours, so that a file's own `line` or `reason` is no trouble."""

_ESCAPED = re.compile(r"'+[=+\-@\t\r]")


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that was not imported; `line` is where it ends in the file."""

    line: int
    email: str
    reason: Dropped


@dataclass(frozen=True, slots=True)
class CsvImport:
    """A file that has been read: who is in it, and who was dropped and why."""

    rows: int  # in the file, the blank ones not counted
    people: int  # how many `batches` yields
    dropped: Mapping[Dropped, int]  # duplicates too: they are merged, not rejected
    _people: pl.DataFrame
    _rejected: pl.DataFrame

    def batches(self, size: int = 5_000) -> Iterator[list[SubscriberRow]]:
        """Everybody, by `email_norm`, in rows as a store imports them."""
        attributes = [name for name in self._people.columns if name.startswith(ATTRIBUTE)]
        for part in self._people.iter_slices(size):
            yield [_subscriber(row, attributes) for row in part.iter_rows(named=True)]

    def rejects(self) -> Iterator[Reject]:
        """In the order of the file."""
        for line, email, reason in self._rejected.iter_rows():
            yield Reject(line, email, Dropped(reason))


def read_subscribers(path: Path) -> CsvImport:
    """Read and check a file; a UsageError says what to do about one that cannot be read."""
    rejected: list[pl.DataFrame] = []

    def set_rejects_aside(batches: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        for batch in batches:
            dropped = batch.filter(pl.col("reason").is_not_null())
            rejected.append(dropped.select("line", "email", "reason"))
            yield batch.drop("line")

    with _opened(path) as file:
        reader = _reader(_text(path, file))
        try:
            columns = _columns(path, reader)
            audience = merge(set_rejects_aside(_batches(reader, columns)))
        except csv.Error as error:
            raise UsageError(
                f"{path} is broken at line {reader.line_num}: {error}.",
                remedy='Look for a quote (") that is opened and not closed, there or above.',
            ) from None
    return CsvImport(
        rows=audience.frame.height + sum(audience.dropped.values()),
        people=audience.frame.height,
        dropped=audience.dropped,
        _people=audience.frame,
        _rejected=pl.concat(rejected),
    )


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """The file as text. Whatever the system or the encoding refuses becomes one clear sentence."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file
    except FileNotFoundError:
        raise UsageError(f"There is no file {path}.", remedy="Check the path.") from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder.", remedy="Name the CSV file in it.") from None
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not UTF-8 (byte 0x{error.object[error.start]:02x}).",
            remedy='Save it as UTF-8 (in Excel: "CSV UTF-8"), or convert it:'
            f" iconv -f {_likely_encoding(path)} -t UTF-8 {path.name} > utf8.csv",
        ) from None
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}.", remedy="Check that it is a file that you may read."
        ) from None


def _likely_encoding(path: Path) -> str:
    with path.open("rb") as file:
        return "UTF-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else "WINDOWS-1252"


def _text(path: Path, file: TextIO) -> Iterator[str]:
    """Its lines. A NUL in one, which Postgres would refuse later: it is UTF-16, or no text at all."""
    for line in file:
        if "\0" in line:
            raise UsageError(
                f"{path} holds a NUL byte: it is not a text file in UTF-8.",
                remedy='Save it as UTF-8 (in Excel: "CSV UTF-8"), or convert it:'
                f" iconv -f UTF-16LE -t UTF-8 {path.name} > utf8.csv",
            )
        yield line


def _reader(lines: Iterator[str]) -> Any:
    """A csv reader for the separator the header has most of; strict, since an open quote swallows people."""
    opening = [next(lines, "")]
    while opening[-1] and not opening[-1].strip(TRIM):
        opening.append(next(lines, ""))
    unquoted = re.sub(r'"[^"]*"', "", opening[-1])
    separator = max(",;\t", key=unquoted.count)
    return csv.reader(chain(opening, lines), delimiter=separator, strict=True)


def _columns(path: Path, reader: Any) -> list[str]:
    """The header in our own words: known names as they are, all others as attributes."""
    headers = ([_as_it_was(name).strip(TRIM) for name in row] for row in reader)
    written = next((names for names in headers if any(names)), None)
    if written is None:
        raise UsageError(f"{path} is empty.", remedy="Its first line names the columns; `email` is one.")
    columns = []
    for position, name in enumerate(written, start=1):
        known = ALSO_CALLED.get(name.lower(), name.lower())
        columns.append(known if known in KNOWN else f"{ATTRIBUTE}{name or f'column {position}'}")
    if "email" not in columns:
        headless = any("@" in name for name in written)
        raise UsageError(
            f"{path} has no column `email`. It has: {', '.join(written)}.",
            remedy="Its first line is a row: put a header above it."
            if headless
            else "Rename the one that holds the addresses.",
        )
    if twice := sorted({name for name in columns if columns.count(name) > 1}):
        names = ", ".join(name.removeprefix(ATTRIBUTE) for name in twice)
        raise UsageError(f"{path} has more than one column {names}.", remedy="Rename or remove one.")
    return columns


def _batches(reader: Any, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Checked rows with their lines. The first batch is empty, so that a file without rows has columns."""
    width = len(columns)
    schema = {"line": pl.Int64, "ragged": pl.Boolean} | dict.fromkeys(columns, pl.String)
    padding = [""] * width

    def rows() -> Iterator[list[Any]]:
        for row in reader:
            if any(row):
                yield [reader.line_num, any(row[width:]), *map(_as_it_was, (row + padding)[:width])]

    lines = rows()
    batch: list[list[Any]] = []
    while True:
        frame = check(pl.DataFrame(list(zip(*batch, strict=True)) or None, schema=schema))
        ragged = pl.when("ragged").then(pl.lit(Dropped.BAD_ROW.value, REASON)).otherwise("reason")
        yield frame.with_columns(reason=ragged).drop("ragged")
        if not (batch := list(islice(lines, BATCH))):
            return


def _as_it_was(value: str) -> str:
    """Without the `'` that keeps a spreadsheet from taking a value for a formula; our own exports have it."""
    return value[1:] if value[:1] == "'" and _ESCAPED.match(value) else value


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
