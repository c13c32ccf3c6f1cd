"""New SQLite stores without the 20 ms that each takes to run all migrations: most tests begin with one."""

from __future__ import annotations

import os
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
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(_migrated())


def open_new(path: Path, clock: Clock) -> SqliteStore:
    """Opened again, the same store."""
    if not path.exists():
        prepare(path)
    return SqliteStore(path, clock)
