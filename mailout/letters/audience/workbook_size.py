"""How large a workbook or an archive is once it is unpacked: a small file can hold more than any machine."""

from __future__ import annotations

import io
import re
import sys
import zipfile
import zlib

from mailout.base.errors import UsageError

MAX_UNPACKED_BYTES = 1_000_000_000
MOST_CELLS = 60_000_000
"""Of one sheet: a reader makes room for every cell up to the last one, empty or not."""
ENCRYPTED = 1
DAMAGED = (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, ValueError)
"""What zipfile raises for a file that is not as it says."""
_PART = 1 << 20
_CELL = re.compile(rb"""<(?:\w{1,20}:)?c\s[^>]{0,100}?\br\s{0,9}=\s{0,9}["']([A-Z]{1,3})([0-9]{1,7})["']""")
_LONGEST = 200
"""Bytes of a cell's beginning that may lie in two parts."""


def check_size(name: str, data: bytes) -> frozenset[str]:
    """Before anything is made of it: the names of its parts. A UsageError says what to do."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            whole = 0
            for entry in packed.infolist():
                whole += _unpacked(name, packed, entry, MAX_UNPACKED_BYTES - whole)
            return frozenset(packed.namelist())
    except DAMAGED as error:
        why = str(error) or "a part of it is missing"
        raise UsageError(
            f"{name} cannot be read as a workbook: {why}.",
            remedy="Save it as .xlsx without a password, or as CSV.",
        ) from None


def _unpacked(name: str, packed: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int) -> int:
    """Its size as it really is: what the file says of itself may be wrong."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or entry.flag_bits & ENCRYPTED:
        raise zipfile.BadZipFile("it is packed in an unusual way")
    entry.file_size = sys.maxsize  # zipfile would stop there
    size, rows, columns, rest = 0, 0, 0, b""
    with packed.open(entry) as unpacked:
        while part := unpacked.read(_PART):
            size += len(part)
            if size > most:
                raise _too_large(name)
            for found in _CELL.finditer(rest + part):  # a sheet may have any name
                rows, columns = max(rows, int(found[2])), max(columns, _column(found[1]))
            if rows * columns > MOST_CELLS:
                raise _too_large(name)
            rest = part[-_LONGEST:]
    return size


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number


def _too_large(name: str) -> UsageError:
    return UsageError(
        f"{name} is too large once it is unpacked.",
        remedy="Delete empty rows and columns and save it again, or save it as CSV.",
    )
