"""Slices from a CSV file or a workbook: good rows are kept, bad ones written beside the file, with why."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from mailout.base.clock import timestamp_of
from mailout.base.errors import HomeUnwritable, UsageError
from mailout.kinds.articles.order import KEY
from mailout.letters.audience.table_file import open_table
from mailout.letters.audience.tables import key
from mailout.letters.content.model import clean
from mailout.letters.content.slices import PublishStatus, Slice, slice_id
from mailout.letters.content.variables import marked_address

SCOPE = "ocd-division/"
COLUMNS = (
    *("article_key", "section_order", "is_headline", "title", "dek", "body_md", "link_url", "scope_ocd_id"),
    *("publish_status", "publish_at", "expires_at", "sort_index", "tags"),
)
NEEDED = ("article_key", "section_order", "publish_status")
LONGEST = {"title": 180, "dek": 280, "body_md": 10_000}
YES, NO = {"true", "yes", "y", "1", "x"}, {"", "false", "no", "n", "0"}
NUMBERS = 2**31
"""What both stores can hold."""


class RowErrorCode(StrEnum):
    """What kind of mistake a row has."""

    PARSE_ERROR = "PARSE_ERROR"  # a value cannot be read
    VALIDATION_ERROR = "VALIDATION_ERROR"  # it can be read, and breaks a rule


@dataclass(frozen=True, slots=True)
class RowError:
    """A row that was left out."""

    row_number: int  # as a spreadsheet counts: the header is row 1
    code: RowErrorCode
    message: str
    row: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SliceFile:
    """What a file holds."""

    slices: Sequence[Slice]
    errors: Sequence[RowError]
    encoding: str | None = None  # by which it was read; None: a workbook


class _BadRow(Exception):
    def __init__(self, message: str, code: RowErrorCode = RowErrorCode.VALIDATION_ERROR) -> None:
        self.message, self.code = message, code


def read_slices(path: Path, *, encoding: str | None = None, sheet: str | None = None) -> SliceFile:
    """Each row checked by itself. Of two rows in the same place the first counts, unless the later one
    archives it."""
    table = open_table(path, {key("article_key")}, encoding=encoding, sheet=sheet)
    header = [_name(cell) for cell in table.header]
    missing = [name for name in NEEDED if name not in header]
    if missing:
        raise UsageError(
            f"{path} has no column {' and no column '.join(missing)}.",
            remedy=f"Its first line names the columns: {', '.join(COLUMNS)}.",
        )
    found: dict[tuple[str, int, str, int], tuple[int, Slice]] = {}
    errors = []
    for counted, (line, cells) in enumerate(table.rows, start=2):
        if not any(cell.strip() for cell in cells):
            continue
        number = line if table.encoding is None else counted  # a text's row may have several lines
        row = dict(zip(header, (cell.strip() for cell in cells), strict=False))
        beyond = ",".join(cells[len(header) :])
        try:
            if beyond.strip(", "):
                row[""] = beyond
                raise _BadRow("There are more values than columns.", RowErrorCode.PARSE_ERROR)
            one = _slice(row)
            before = found.get(one.place)
            if before is not None and one.publish_status is not PublishStatus.ARCHIVED:
                raise _BadRow(f"Row {before[0]} is in the same place: give one of them another sort_index.")
            found[one.place] = number, one
        except _BadRow as bad:
            errors.append(RowError(number, bad.code, bad.message, row))
    return SliceFile([one for _, one in found.values()], errors, table.encoding)


def write_errors(path: Path, errors: Sequence[RowError]) -> Path | None:
    """`FILE.errors.csv` beside the file; without errors, one of an earlier import is removed."""
    beside = path.with_name(f"{path.stem}.errors.csv")
    try:
        if not errors:
            beside.unlink(missing_ok=True)
            return None
        with beside.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("row_number", "error_code", "error_message", "raw_row_json"))
            for error in errors:
                raw = json.dumps(dict(error.row), ensure_ascii=False)
                writer.writerow((error.row_number, error.code, error.message, raw))
    except OSError as error:
        raise HomeUnwritable(
            f"{beside} cannot be written: {error.strerror}.", remedy="Copy the file to a folder of your own."
        ) from error
    return beside


def _name(cell: str) -> str:
    return re.sub(r"[\s_-]+", "_", cell.strip().lower())


def _slice(row: Mapping[str, str]) -> Slice:
    def read(name: str) -> str | None:
        return clean(row.get(name, "")).replace("\0", "") or None

    one = Slice(
        article_key=read("article_key") or "",
        section_order=_number(row, "section_order", None),
        is_headline=_yes_or_no(row, "is_headline"),
        title=read("title"),
        dek=read("dek"),
        # Authors of CSV files write line breaks out, to keep a slice on one line.
        body_md=(read("body_md") or "").replace("\r\n", "\n").replace("\\n", "\n"),
        link_url=read("link_url"),
        scope_ocd_id=read("scope_ocd_id"),
        tags=_tags(row.get("tags", "")),
        publish_status=_status(row.get("publish_status", "")),
        publish_at=_time(row, "publish_at"),
        expires_at=_time(row, "expires_at"),
        sort_index=_number(row, "sort_index", 0),
    )
    for problem in _problems(one):
        raise _BadRow(problem)
    return replace(one, id=slice_id(one.place))


def _problems(one: Slice) -> Iterator[str]:
    if not KEY.fullmatch(one.article_key):
        yield "article_key: use lowercase letters, digits and hyphens, as in spring-budget."
    if one.section_order < 1:
        yield "section_order: begins at 1."
    if one.scope_ocd_id is not None and not re.fullmatch(rf"{SCOPE}\S+", one.scope_ocd_id):
        yield f"scope_ocd_id: begins with {SCOPE} and has no spaces; leave it empty for everybody."
    for name, most in LONGEST.items():
        length = len(getattr(one, name) or "")
        if length > most:
            yield f"{name}: {length:,} characters; {most:,} is the most."
    if one.link_url is not None and not _is_link(one.link_url):
        yield "link_url: is no address that begins with http:// or https://."
    if one.publish_at is not None and one.expires_at is not None and one.expires_at <= one.publish_at:
        yield "expires_at: is not after publish_at, so it would never be sent."


def _is_link(written: str) -> bool:
    address = marked_address(written)  # a variable may be written with spaces
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc) and not re.search(r"[\s<>\\]", address)


def _unreadable(name: str, written: str, expected: str) -> _BadRow:
    shown = written if len(written) <= 40 else f"{written[:39]}…"
    return _BadRow(f"{name}: {shown!r} is not {expected}.", RowErrorCode.PARSE_ERROR)


def _number(row: Mapping[str, str], name: str, default: int | None) -> int:
    written = row.get(name, "")
    if not written and default is not None:
        return default
    if not re.fullmatch(r"[+-]?\d{1,10}(\.0+)?", written):  # a workbook may write 1.0
        raise _unreadable(name, written, "a whole number")
    number = int(written.partition(".")[0])
    if not -NUMBERS <= number < NUMBERS:
        raise _unreadable(name, written, "a number of that size")
    return number


def _yes_or_no(row: Mapping[str, str], name: str) -> bool:
    written = row.get(name, "").lower()
    if written not in YES | NO:
        raise _unreadable(name, written, "TRUE, FALSE or empty")
    return written in YES


def _status(written: str) -> PublishStatus:
    try:
        return PublishStatus(written.lower())
    except ValueError:
        raise _BadRow(f"publish_status: {', '.join(PublishStatus)} are known, not {written!r}.") from None


def _time(row: Mapping[str, str], name: str) -> float | None:
    """ISO 8601; without a zone it is UTC, and a bare date is its midnight."""
    written = row.get(name, "")
    if not written:
        return None
    moment = timestamp_of(written)
    if moment is None:
        raise _unreadable(name, written, "a date such as 2026-11-15 or 2026-11-15T09:00:00Z")
    return moment


def _tags(written: str) -> tuple[str, ...]:
    """As places are written in a file of people (`a,b`, `a;b`, `a|b`, `{a,b}`, `["a","b"]`), with spaces."""
    tidy = (clean(part).strip() for part in re.split(r"[,;|{}\[\]\"\n]", written))
    return tuple(dict.fromkeys(filter(None, tidy)))
