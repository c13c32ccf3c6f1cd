"""The stores that every contract test runs on. Another store is one more entry in `FACTORIES`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from mailout.adapters.sqlite import SqliteStore
from mailout.base.clock import SystemClock
from mailout.store import Store
from tests.clocks import FakeClock
from tests.contract.postgres import PostgresFactory, open_postgres
from tests.new_sqlite import open_new


class StoreFactory(Protocol):
    """Makes empty stores of one kind whose time a test sets."""

    def make(self, clock: FakeClock) -> Store:
        """A new, empty store; the one before it is closed."""
        ...

    def set_now(self, moment: float) -> None:
        """The store's time from here on, for every connection to it that this factory made."""
        ...

    def raw(self, sql: str, params: Sequence[Any] = ()) -> Sequence[Mapping[str, Any]]:
        """Look (or reach) behind the port, at once and for good. Parameters are written `?`."""
        ...

    def open_again(self) -> Store:
        """A second connection to the same data, as another process would have one."""
        ...

    def address(self) -> str:
        """What `open_address` in another process needs to reach the same data."""
        ...

    def close(self) -> None: ...


class SqliteFactory:
    """A file of its own for each store."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = 0
        self._clock = FakeClock()
        self._open: list[Store] = []
        self._raw: sqlite3.Connection | None = None

    def make(self, clock: FakeClock) -> Store:
        self.close()
        self._made += 1
        self._clock = clock
        return self.open_again()

    def set_now(self, moment: float) -> None:
        self._clock.wall = moment

    def raw(self, sql: str, params: Sequence[Any] = ()) -> Sequence[Mapping[str, Any]]:
        if self._raw is None:
            self._raw = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            self._raw.row_factory = sqlite3.Row
        return [dict(row) for row in self._raw.execute(sql, params)]

    def open_again(self) -> Store:
        store = open_new(self._path, self._clock)
        self._open.append(store)
        return store

    def address(self) -> str:
        return f"sqlite:{self._path}"

    def close(self) -> None:
        if self._raw is not None:
            self._raw.close()
            self._raw = None
        while self._open:
            self._open.pop().close()

    @property
    def _path(self) -> Path:
        return self._folder / f"store{self._made}" / "mailout.db"


FACTORIES: Mapping[str, Callable[[Path], StoreFactory]] = {
    "sqlite": SqliteFactory,
    "supabase": PostgresFactory,
}


def open_address(address: str) -> Store:
    """Another process's way to a store, on the machine's own clock."""
    kind, _, where = address.partition(":")
    if kind == "sqlite":
        return SqliteStore(Path(where), SystemClock())
    if kind == "supabase":
        return open_postgres(where)
    raise ValueError(f"No store has an address like {address}.")
