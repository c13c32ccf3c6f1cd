"""Where reports lie, and how a whole file takes the place of another at once."""

from __future__ import annotations

import mmap
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from markupsafe import escape

from mailout.base.addresses import without_address
from mailout.base.errors import HomeUnwritable


def csv_path(reports: Path, mailout_id: str) -> Path:
    return reports / f"{mailout_id}.csv"


def html_path(reports: Path, mailout_id: str) -> Path:
    return reports / f"{mailout_id}.html"


def parts_directory(reports: Path, mailout_id: str) -> Path:
    return reports / mailout_id


def replace_address(path: Path, address: str, instead: str) -> bool:
    """Wherever it stands by itself, also as HTML has it; whether it stood there."""
    written = {address, str(escape(address))}
    if not _holds(path, written):
        return False
    changed = False
    with replacing(path) as file, path.open(encoding="utf-8", newline="") as old:
        for line in old:
            new = line
            for one in written:
                new = without_address(new, one, instead)
            changed = changed or new != line
            file.write(new)
    return changed


def _holds(path: Path, written: Iterable[str]) -> bool:
    """At the disk's speed: nearly no file has one person's address."""
    if not path.stat().st_size:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as seen:
        return any(seen.find(one.encode()) >= 0 for one in written)


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Write beside `path`, then step into its place: a reader sees the old file or the new one, whole.

    HomeUnwritable: the old one is still there.
    """
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("x", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise HomeUnwritable.because(path, error) from error
    finally:
        with suppress(OSError):  # it would hide why
            beside.unlink(missing_ok=True)
