"""Where reports lie, and how a whole file takes the place of another at once."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from mailout.base.addresses import without_address
from mailout.base.errors import HomeUnwritable


def csv_path(reports: Path, mailout_id: str) -> Path:
    return reports / f"{mailout_id}.csv"


def html_path(reports: Path, mailout_id: str) -> Path:
    return reports / f"{mailout_id}.html"


def parts_directory(reports: Path, mailout_id: str) -> Path:
    return reports / mailout_id


def replace_address(path: Path, address: str, instead: str) -> bool:
    """Wherever it stands by itself, line by line; whether it stood there."""
    with path.open(encoding="utf-8", newline="") as old:
        if not any(without_address(line, address, instead) != line for line in old):
            return False
        old.seek(0)
        with replacing(path) as file:
            file.writelines(without_address(line, address, instead) for line in old)
    return True


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
        beside.unlink(missing_ok=True)
