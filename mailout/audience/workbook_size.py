"""How large a workbook is once it is unpacked: a small file can hold more than any machine."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from mailout.errors import UsageError

MOST_BYTES = 1_000_000_000
MOST_CELLS = 60_000_000
"""Of one sheet: a reader makes room for every cell up to the last one, empty or not."""
_PART = 1 << 20
_CELL = re.compile(rb"""<(?:\w{1,20}:)?c\s[^>]{0,100}?\br\s{0,9}=\s{0,9}["']([A-Z]{1,3})([0-9]{1,7})["']""")
_LONGEST = 200
"""Bytes of a cell's beginning that may lie in two parts."""


def check_size(path: Path, data: bytes) -> None:
    """Before anything is made of it. A UsageError says what to do."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            entries = packed.infolist()
            if "xl/workbook.xml" not in {entry.filename.lower() for entry in entries}:
                raise UsageError(f"{path} is no .xlsx workbook.", remedy="Save it as .xlsx, or as CSV.")
            whole = 0
            for entry in entries:
                whole += _unpacked(path, data, entry, MOST_BYTES - whole)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise UsageError(
            f"{path} cannot be read as a workbook: {error}.",
            remedy="Save it as .xlsx without a password, or as CSV.",
        ) from None


def _unpacked(path: Path, data: bytes, entry: zipfile.ZipInfo, most: int) -> int:
    """Its size as it really is: what the file says of itself may be wrong."""
    size, rows, columns, rest = 0, 0, 0, b""
    for part in _parts(data, entry):
        size += len(part)
        if size > most:
            raise _too_large(path)
        for found in _CELL.finditer(rest + part):  # a sheet may have any name
            rows, columns = max(rows, int(found[2])), max(columns, _column(found[1]))
        if rows * columns > MOST_CELLS:
            raise _too_large(path)
        rest = part[-_LONGEST:]
    return size


def _parts(data: bytes, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    header = data[entry.header_offset : entry.header_offset + 30]
    if len(header) < 30 or not header.startswith(b"PK\x03\x04"):
        raise zipfile.BadZipFile("a part of it is not where it should be")
    start = entry.header_offset + 30 + sum(int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
    packed = memoryview(data)[start : start + entry.compress_size]
    if entry.compress_type == zipfile.ZIP_STORED:
        yield from (bytes(packed[at : at + _PART]) for at in range(0, len(packed), _PART))
        return
    if entry.compress_type != zipfile.ZIP_DEFLATED:
        raise zipfile.BadZipFile("it is packed in an unusual way")
    unpacking = zlib.decompressobj(-zlib.MAX_WBITS)
    waiting: bytes | memoryview = packed
    while not unpacking.eof:
        part = unpacking.decompress(waiting, _PART)
        waiting = unpacking.unconsumed_tail
        if not part and not waiting:
            return
        yield part


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number


def _too_large(path: Path) -> UsageError:
    return UsageError(
        f"{path} is too large once it is unpacked.",
        remedy="Delete empty rows and columns and save it again, or save it as CSV.",
    )
