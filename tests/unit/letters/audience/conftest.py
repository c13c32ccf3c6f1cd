"""These tests are about what a file means: hundreds of files are read here, without a process for each."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from mailout.letters.audience import people_import
from mailout.letters.audience.table_file import open_tables
from mailout.letters.audience.tables import FileTable, read_tables


def _read_here(
    path: Path, headers: Collection[str], *, encoding: str | None = None, sheet: str | None = None
) -> Iterator[FileTable]:
    if not path.is_file():
        return open_tables(path, headers)
    return iter(read_tables(path.read_bytes(), str(path), headers, encoding=encoding, sheet=sheet))


@pytest.fixture(scope="package", autouse=True)
def in_this_process() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(people_import, "open_tables", _read_here)
        yield
