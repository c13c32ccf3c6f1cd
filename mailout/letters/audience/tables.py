"""Tables of people as a file has them: text in any usual form, sheets of a workbook, an archive of these."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
import zipfile
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from mailout.base.addresses import TRIM
from mailout.base.errors import UsageError
from mailout.letters.audience.encodings import Decoded, decode

MOST_COLUMNS = 2_000
SEPARATORS = ",;\t|"
FIRST_LINES = 20
"""A header may stand below a few lines of explanation, as in LinkedIn's export."""

ESCAPED = r"^'('*[=+\-@\t\r])"
"""A `'` that keeps a spreadsheet from taking a value for a formula; our own exports have it."""

ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # the second one holds nothing
OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"
WORKBOOKS = frozenset({"xl/workbook.xml", "content.xml"})
"""Parts of which one is in every .xlsx and .ods."""
MOST_FILES = 50
"""Of an archive."""
MAX_UNPACKED_BYTES = 1_000_000_000
"""By what the file says of itself. One that says less than it is meets the limits of the process."""
READ = (".csv", ".tsv", ".txt", ".xlsx", ".xls", ".ods")
HTML_STARTS = (b"<html", b"<!doctype html", b"<table", b"<?xml", b"<meta")

IsHeader = Callable[[str], bool]
"""Whether this cell is the header of the column that the file is about."""


@dataclass(frozen=True, slots=True)
class FileTable:
    """A header, and the rows below it with the line on which each ends."""

    header: Sequence[str]
    file: str
    encoding: str | None  # None: a workbook
    readings: Sequence[tuple[str, str]]  # of a line, by encodings that are possible: somebody must choose
    sheet: str | None
    rows: Iterator[tuple[int, list[str]]]


def key(written: str) -> str:
    """Letters and digits alone: case, accents, spaces, `_` and `-` make no difference."""
    return "".join(sign for sign in unicodedata.normalize("NFKD", written).casefold() if sign.isalnum())


def read_tables(
    data: bytes, name: str, headers: Collection[str], *, encoding: str | None = None, sheet: str | None = None
) -> list[FileTable]:
    """What `table_file.open_tables` has done elsewhere. A UsageError says what to do about a bad file."""

    def is_header(cell: str) -> bool:
        return key(cell) in headers

    packed = data.startswith(ZIP)
    parts = _parts(name, data) if packed else frozenset()
    if data.startswith(OLD_WORKBOOK) or parts & WORKBOOKS:
        return _workbook(name, data, sheet, is_header)
    if packed:
        return [
            table
            for of, part in _unpacked(name, data)
            for table in read_tables(part, of, headers, encoding=encoding, sheet=sheet)
        ]
    if sheet is not None:
        raise UsageError(f"{name} is not a workbook: it has no sheets.", remedy="Leave --sheet out.")
    start = data[:1000].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith(b"begin:vcard"):
        raise UsageError(f"{name} is a vCard, not a table.", remedy="Export the contacts as CSV instead.")
    if start.startswith(HTML_STARTS):
        raise UsageError(
            f"{name} is a web page, whatever its name says.",
            remedy="Open it in Excel or LibreOffice and save it as .xlsx or CSV.",
        )
    return [_text_table(name, decode(data, name, encoding), is_header)]


def _parts(name: str, data: bytes) -> frozenset[str]:
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        if sum(entry.file_size for entry in packed.infolist()) > MAX_UNPACKED_BYTES:
            raise UsageError(
                f"{name} is too large once it is unpacked.",
                remedy="Delete empty rows and columns and save it again, or save it as CSV.",
            )
        return frozenset(packed.namelist())


def _unpacked(name: str, data: bytes) -> list[tuple[str, bytes]]:
    """The files of an archive such as Mailchimp's. The name of each tells who is in it."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        named = [one for one in packed.namelist() if one.lower().endswith(READ) and "__MACOSX" not in one]
        if not named or len(named) > MOST_FILES:
            raise UsageError(
                f"{name} holds {len(named) or 'no'} tables.",
                remedy="Unpack it and import the files of people.",
            )
        found = [(one, packed.read(one)) for one in named]
    if any(part.startswith(ZIP) and not _parts(name, part) & WORKBOOKS for _, part in found):
        raise UsageError(f"{name} holds another archive.", remedy="Unpack it first.")
    return [(one, part) for one, part in found if part.strip()]


def require_narrow(name: str, cells: Sequence[str], line: int) -> None:
    if len(cells) > MOST_COLUMNS:
        raise UsageError(
            f"{name} has {len(cells):,} columns in line {line}; {MOST_COLUMNS:,} is the most.",
            remedy="Delete those that you do not need.",
        )


def _empty(name: str) -> UsageError:
    return UsageError(f"{name} is empty.", remedy="Its first line names the columns.")


# ── Text ──


@dataclass(frozen=True, slots=True)
class _Form:
    """How the rows of a text file are written."""

    separator: str = ","
    quote: str = '"'
    escape: str | None = None
    wrapped: bool = False  # each line is quoted as a whole, quotes and all
    skipped: int = 0  # lines above the header


def _text_table(name: str, decoded: Decoded, is_header: IsHeader) -> FileTable:
    text = decoded.text
    form = _form(text, is_header)
    if _is_broken(text, form):  # a quote within quotes that is not doubled: `"Ana "the boss" Li"`
        stray = rf'(?<![{re.escape(form.separator)}\r\n"])"(?![{re.escape(form.separator)}\r\n"])'
        mended = re.sub(stray, '""', text)
        text = text if _is_broken(mended, form) else mended
    reader = _reader(text, form)
    rows = _rows(name, reader, form)
    header = next((cells for _, cells in rows if any(cell.strip(TRIM) for cell in cells)), None)
    if header is None:
        raise _empty(name)
    require_narrow(name, header, reader.line_num + form.skipped)
    names = [re.sub(ESCAPED, r"\1", cell).strip(TRIM) for cell in header]
    return FileTable(names, name, decoded.encoding, decoded.readings, None, rows)


def _reader(text: str, form: _Form) -> Any:
    """Strict, since an open quote would swallow people."""
    lines = islice(io.StringIO(text, newline=""), form.skipped, None)
    return csv.reader(
        lines, delimiter=form.separator, quotechar=form.quote, escapechar=form.escape, strict=True
    )


def _is_broken(text: str, form: _Form) -> bool:
    try:
        deque(_reader(text, form), maxlen=0)
    except csv.Error:
        return True
    return False


def _rows(name: str, reader: Any, form: _Form) -> Iterator[tuple[int, list[str]]]:
    try:
        for cells in reader:
            if form.wrapped and len(cells) == 1:
                cells = next(csv.reader(cells, delimiter=form.separator, strict=True), [])
            yield reader.line_num + form.skipped, cells
    except csv.Error as error:
        too_long = str(error).startswith("field larger")
        why = f"a cell has more than {csv.field_size_limit():,} characters" if too_long else str(error)
        raise UsageError(
            f"{name} is broken at line {reader.line_num + form.skipped}: {why}.",
            remedy='Look for a quote (") that is opened and not closed, there or above.',
        ) from None


def _form(text: str, is_header: IsHeader) -> _Form:
    lines = list(islice(io.StringIO(text, newline=""), FIRST_LINES))
    above = 0
    forced = None
    while above < len(lines) and not lines[above].strip(TRIM):
        above += 1
    if above < len(lines) and (said := re.fullmatch(r'"?sep=(\\t|.)"?', lines[above].strip("\r\n "))):
        forced = "\t" if said[1] == "\\t" else said[1]
        above += 1
    found = _header_line(lines, above, forced or SEPARATORS, is_header)
    if found is None:  # the first line that is not blank, split by what it has most of
        while above < len(lines) and not lines[above].strip(TRIM):
            above += 1
        first = re.sub(r'"[^"]*"', "", lines[above]) if above < len(lines) else ""
        found = _Form(forced or max(SEPARATORS, key=first.count), skipped=above)
    return replace(found, escape="\\" if _has_escaped_quotes(text, found.separator) else None)


def _header_line(lines: Sequence[str], above: int, separators: str, is_header: IsHeader) -> _Form | None:
    """The first line with a column of addresses, and the separator that gives it the most columns."""
    for at in range(above, len(lines)):
        line = lines[at].strip("\r\n")
        quote = "'" if line.startswith("'") and line.count("'") > 1 else '"'
        found = []
        for separator in separators:
            cells = _cells(line, separator, quote)
            wrapped = len(cells) == 1 and separator in cells[0] and line.startswith('"')
            if wrapped:
                cells = _cells(cells[0], separator, quote)
            if any(is_header(cell) for cell in cells):
                found.append((len(cells), _Form(separator, quote, None, wrapped, at)))
        if found:
            return max(found, key=lambda one: one[0])[1]
    return None


def _cells(line: str, separator: str, quote: str) -> list[str]:
    if line.count(separator) > 10 * MOST_COLUMNS:
        return []  # no header, and it would take long to look at
    try:
        return next(csv.reader([line], delimiter=separator, quotechar=quote), [])
    except csv.Error:  # a cell of more than 131,072 characters: not split by this one
        return []


def _has_escaped_quotes(text: str, separator: str) -> bool:
    r"""`\"` within a cell. At the end of one (`"C:\"`) it is a backslash and the closing quote."""
    return re.search(r'\\"(?!["\r\n' + re.escape(separator) + r"]|$)", text) is not None


# ── Workbooks ──


def _workbook(name: str, data: bytes, sheet: str | None, is_header: IsHeader) -> list[FileTable]:
    import fastexcel  # here: a text file does not need it, and each is read by a process that begins anew

    try:
        names = fastexcel.read_excel(data).sheet_names
    except fastexcel.FastExcelError as error:
        raise UsageError(
            f"{name} cannot be read as a workbook: {str(error).splitlines()[0]}.",
            remedy="Save it as .xlsx without a password, or as CSV.",
        ) from None
    if sheet is not None and sheet not in names:
        raise UsageError(f"{name} has no sheet {sheet}.", remedy=f"It has: {', '.join(names)}.")
    read = (_sheet(name, data, one, is_header) for one in ([sheet] if sheet else names))
    tables = [table for table in read if table is not None]
    if not tables:
        raise _empty(name)
    return tables


def _sheet(name: str, data: bytes, sheet: str, is_header: IsHeader) -> FileTable | None:
    import polars as pl

    frame = pl.read_excel(
        io.BytesIO(data),
        sheet_name=sheet,
        has_header=False,
        read_options={"dtypes": "string", "skip_rows": 0},
        drop_empty_rows=False,
        drop_empty_cols=False,
        raise_if_empty=False,
    )
    rows = ((line, [cell or "" for cell in row]) for line, row in enumerate(frame.iter_rows(), start=1))
    first = list(islice((row for row in rows if any(cell.strip(TRIM) for cell in row[1])), FIRST_LINES))
    if not first:
        return None
    at = next((n for n, (_, cells) in enumerate(first) if any(is_header(cell) for cell in cells)), 0)
    header = [cell.strip(TRIM) for cell in first[at][1]]
    return FileTable(header, name, None, (), sheet, chain(first[at + 1 :], rows))
