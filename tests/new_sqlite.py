"""New SQLite stores without the 20 ms that each takes to run all migrations: most tests begin with one."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from mailout.adapters.sqlite import SqliteStore
from mailout.base.clock import Clock, SystemClock


@cache
def _migrated() -> bytes:
    """The file as the migrations make it, once per process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mailout.db"
        SqliteStore(path, SystemClock()).close()
        return path.read_bytes()


def prepare(path: Path) -> None:
    """A new store's file, for whoever opens it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(_migrated())


def open_new(path: Path, clock: Clock) -> SqliteStore:
    """Opened again, the same store."""
    if not path.exists():
        prepare(path)
    return SqliteStore(path, clock)
