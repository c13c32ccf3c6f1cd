"""An archive being written: rows in, files of some ten thousand rows out, each read back."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from mailout.adapters.parquet.tables import CONTENTS, EVENTS, MAILOUT, MESSAGES, frame_of
from mailout.base.errors import StoreError
from mailout.insight.retention.port import Table, Tally

PART = 50_000
NOTHING_LOST = "Look at the disk, then run it again: the store still has what is not in an archive."
LETTERS = 100
"""Contents are long: a file holds fewer of them."""


class ParquetDraft:
    """Fulfils `archive.Draft`. Memory holds one part of each table, however long the mailout is."""

    def __init__(self, folder: Path) -> None:
        with readable(folder):
            folder.mkdir(parents=True)
        self._folder = folder
        self._tables: dict[Table, _Table] = {
            "messages": _Table(folder, "messages", MESSAGES, PART),
            "events": _Table(folder, "events", EVENTS, PART),
            "contents": _Table(folder, "contents", CONTENTS, LETTERS),
        }

    def add(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        self._tables[table].add(rows)

    def seal(self, mailout: Mapping[str, Any]) -> Tally:
        for table in self._tables.values():
            table.close()
        write(frame_of([mailout], MAILOUT), self._folder / "mailout.parquet")
        sync(self._folder)
        sync(self._folder.parent)  # also its hidden name: the store is about to rely on it
        return tally_of(self._folder)


class _Table:
    def __init__(self, folder: Path, name: str, schema: Mapping[str, Any], part: int) -> None:
        self._folder, self._name, self._schema, self._part = folder, name, schema, part
        self._frames: list[pl.DataFrame] = []
        self._waiting = 0
        self._written = 0

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            self._frames.append(frame_of(rows, self._schema))
            self._waiting += len(rows)
        if self._waiting >= self._part:
            self._write()

    def close(self) -> None:
        """An empty table is a file, too: whoever reads all of them finds the columns."""
        if self._waiting or not self._written:
            self._frames.append(frame_of([], self._schema))
            self._write()

    def _write(self) -> None:
        frame = pl.concat(self._frames, rechunk=True)
        write(frame, self._folder / f"{self._name}-{self._written:05}.parquet")
        self._frames, self._waiting = [], 0
        self._written += 1


def write(frame: pl.DataFrame, path: Path) -> None:
    """On the disk for good, and read back: nothing is deleted for a file that is not what it should be."""
    with readable(path):
        frame.write_parquet(path, compression="zstd", statistics=True)
        with path.open("rb+") as file:
            os.fsync(file.fileno())
        if not pl.read_parquet(path).equals(frame):
            raise StoreError(f"{path} does not read as it was written.", remedy=NOTHING_LOST)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """A full disk, a file that is none: in one clear error."""
    try:
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        raise StoreError(
            f"The archive {path} cannot be written or read: {error}.", remedy=NOTHING_LOST
        ) from error


def sync(folder: Path) -> None:
    """The names in it are on the disk, too."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def tally_of(folder: Path) -> Tally:
    """Counted in the files, one after the other; an id that is there twice counts once."""
    states: Counter[str] = Counter()
    for path in parts(folder, "messages"):
        frame = pl.read_parquet(path, columns=["id", "state"]).unique("id")
        states.update(dict(frame["state"].value_counts().iter_rows()))
    events = sum(pl.scan_parquet(path).select(pl.len()).collect().item() for path in parts(folder, "events"))
    size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
    return Tally(dict(states), events, size)


def parts(folder: Path, table: str) -> Iterator[Path]:
    yield from sorted(folder.glob(f"{table}-*.parquet"))
