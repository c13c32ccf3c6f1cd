"""One SQLite file: opened, brought up to date, and written by one thread at a time."""

from __future__ import annotations

import errno
import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from mailout.base.addresses import without_address
from mailout.base.clock import Clock
from mailout.base.errors import (
    HomeUnwritable,
    StoreDamaged,
    StoreError,
    StoreMismatch,
    StoreUnavailable,
    TransitionRefused,
)
from mailout.base.ids import keyed_hash, uuid_of
from mailout.letters.audience import segment_tree
from mailout.outbox.delivery.states import TRANSITIONS

MIGRATIONS = Path(__file__).with_name("migrations")
SQLITE_BUSY_SECONDS = 30.0
CACHE_KB = 32 * 1024
"""Ids are hashes: freezing a large list touches pages all over their index, and writes those again and again
that do not fit. Memory is taken as pages are used, so a small list costs no more."""
INDEX_BYTES = 32 * 1024
ROOM_NEEDED = 64 * 1024
"""With less on the disk, an input or output error of SQLite comes from that."""
NO_NEW_HOME = "Do not start with a new home: letters would go out twice."
WRITABLE_AGAIN = f"Make it and its folder writable again for this user. {NO_NEW_HOME}"

log = logging.getLogger(__name__)


class Database:
    """WAL and `synchronous=FULL`: a commit survives the process and the power."""

    def __init__(self, path: Path, clock: Clock, *, busy_seconds: float = SQLITE_BUSY_SECONDS) -> None:
        self.path = path
        self.clock = clock
        self.views: dict[str, frozenset[str]] = {}  # the columns of those that were selected from
        self._lock = threading.RLock()
        self._connection = self._open(busy_seconds)
        try:
            self._migrate()
        except BaseException:
            self._connection.close()
            raise

    def _open(self, busy_seconds: float) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _see_that_there_is_room(self.path)
            connection = sqlite3.connect(
                self.path, timeout=busy_seconds, isolation_level=None, check_same_thread=False
            )
            connection.row_factory = sqlite3.Row
            _switch_to_wal(connection, busy_seconds)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            # What is deleted is overwritten: a forgotten address would else stay in the file's free space.
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute(f"PRAGMA cache_size = -{CACHE_KB}")
        except (OSError, sqlite3.Error) as error:
            if connection is not None:
                connection.close()
            remedy = "Set MAILOUT_HOME to a folder that you may write to."
            if _identity(self.path) is not None:
                remedy = WRITABLE_AGAIN
            raise (
                _full(self.path, error)
                or _damaged(self.path, error)
                or StoreUnavailable(f"The store {self.path} cannot be opened: {error}.", remedy=remedy)
            ) from error
        self._file = _identity(self.path)
        connection.create_function("mailout_uuid", -1, uuid_of, deterministic=True)
        connection.create_function("mailout_keyed_hash", 2, keyed_hash, deterministic=True)
        connection.create_function("mailout_without", 3, without_address, deterministic=True)
        connection.create_function("mailout_searched", 3, _searched, deterministic=True)
        connection.create_function("mailout_fold", 1, segment_tree.fold, deterministic=True)
        connection.create_function("mailout_number", 1, segment_tree.number_of, deterministic=True)
        connection.create_function("mailout_day", 1, segment_tree.day_of, deterministic=True)
        return connection

    def _migrate(self) -> None:
        """Apply what is missing, all of it or nothing; refuse a file that a newer program has made."""
        scripts = sorted(MIGRATIONS.glob("*.sql"))
        with self.write() as tx:
            (version,) = tx.execute("PRAGMA user_version").fetchone()
            if version > len(scripts):
                raise StoreMismatch(
                    f"{self.path} has schema version {version}; this program knows {len(scripts)}.",
                    remedy="Use the newer mailout that wrote it, or another MAILOUT_HOME.",
                )
            if 0 < version < len(scripts):
                copy = _keep_copy(self.path, version)
                log.info("upgrading %s from schema %d; %s is a copy", self.path, version, copy.name)
            for script in scripts[version:]:
                for statement in statements(script.read_text(encoding="utf-8")):
                    tx.execute(statement)
            if version < len(scripts):
                tx.execute("DELETE FROM state_transitions")
                tx.executemany(
                    "INSERT INTO state_transitions VALUES (?, ?)",
                    [(before, after) for before, afters in TRANSITIONS.items() for after in afters],
                )
                tx.execute(f"PRAGMA user_version = {len(scripts)}")

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction, alone: begun before it reads, so that what it read stays true."""
        with self._lock:
            connection = self._connection
            with _translated(self.path):
                self._see_that_it_is_there()
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise

    def _see_that_it_is_there(self) -> None:
        """SQLite would go on in a file that was deleted, and all that it was told would go with it."""
        if _identity(self.path) != self._file:
            raise HomeUnwritable.gone(self.path)

    def read(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[sqlite3.Row]:
        with self._lock, _translated(self.path):
            return self._connection.execute(sql, parameters).fetchall()

    def change(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> int:
        """One statement, in a transaction of its own; how many rows it has changed."""
        with self.write() as tx:
            return tx.execute(sql, parameters).rowcount

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Several reads of one moment. Writers do not wait for them, nor they for writers."""
        with self._lock, _translated(self.path):
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                self._connection.execute("ROLLBACK")

    def compact(self) -> None:
        """Make the file again without its free pages, and empty the WAL that this went through."""
        with self._lock, _translated(self.path):
            self._connection.execute("VACUUM")
        self.empty_wal()

    def empty_wal(self) -> None:
        """What was changed stands in the file; the WAL keeps no page as it was before. Waits for readers."""
        with self._lock, _translated(self.path):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def _searched(email_norm: str, email: str, attributes: str) -> str:
    """Somebody's address and name, to look for a part of it. In Python: SQLite lowers ASCII alone."""
    known = json.loads(attributes)
    names = (known.get(name, "") for name in ("name", "first_name", "last_name"))
    return segment_tree.fold("\n".join((email_norm, email, " ".join(str(name) for name in names if name))))


def _keep_copy(path: Path, version: int) -> Path:
    """The file as it is before an upgrade, beside it. Called by the writer: nobody changes it meanwhile."""
    copy, draft = path.with_name(f"{path.name}.v{version}"), path.with_name(f"{path.name}.v{version}.part")
    try:
        draft.unlink(missing_ok=True)
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, path.stat().st_mode & 0o777))
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(draft)) as target:
            source.backup(target)
        draft.replace(copy)
    except (OSError, sqlite3.Error) as error:
        draft.unlink(missing_ok=True)
        raise StoreUnavailable(
            f"{path} is not upgraded, because no copy of it could be written: {error}.",
            remedy=f"Free as much space beside it as it takes itself ({path.stat().st_size >> 20} MB).",
        ) from error
    return copy


def _switch_to_wal(connection: sqlite3.Connection, seconds: float) -> None:
    """The switch ignores the busy timeout: opening a fresh file together, all but one are refused."""
    until = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.02)
        else:
            return


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """SQLite's errors in our words: what a trigger refused, what is worth waiting for."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        if "transition refused" in str(error):
            raise TransitionRefused(str(error)) from error
        raise StoreError(f"The store refused it: {error}.") from error
    except (sqlite3.OperationalError, sqlite3.ProgrammingError) as error:
        text = str(error)
        if full := _full(path, error):
            raise full from error
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY:
            raise HomeUnwritable(f"The store {path} cannot be written.", remedy=WRITABLE_AGAIN) from error
        if isinstance(error, sqlite3.OperationalError) and not text.startswith("no such"):
            raise StoreUnavailable(f"The store {path} does not answer: {text}.") from error
        if "closed database" in text:
            raise StoreUnavailable(f"The store {path} is closed.") from error
        raise
    except sqlite3.DatabaseError as error:
        raise _damaged(path, error) or error from None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        file = path.stat()
    except OSError:
        return None
    return file.st_dev, file.st_ino


def _full(path: Path, error: Exception) -> HomeUnwritable | None:
    """Whether a full disk is behind an error. SQLite says so of the file itself; of the ones beside it (the
    WAL, its index) it says that they cannot be opened or written."""
    if isinstance(error, OSError):
        return HomeUnwritable.full(path) if error.errno in (errno.ENOSPC, errno.EDQUOT) else None
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return HomeUnwritable.full(path)
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and _room(path.parent) < ROOM_NEEDED:
        return HomeUnwritable.full(path)
    return None


def _damaged(path: Path, error: Exception) -> StoreDamaged | None:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return None
    return StoreDamaged(
        f"The store {path} is damaged: {error}.",
        remedy=f"Stop mailout and restore a backup: docs/surviving.md says how. {NO_NEW_HOME}",
    )


def _see_that_there_is_room(path: Path) -> None:
    """SQLite maps its index of the WAL into memory. If that finds no room on the disk when it is first
    written to, the process is killed (SIGBUS) without a word."""
    index = path.with_name(f"{path.name}-shm")
    held = index.stat().st_blocks * 512 if index.exists() else 0
    if held < INDEX_BYTES and _room(path.parent) < ROOM_NEEDED:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _room(folder: Path) -> int:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return ROOM_NEEDED  # it cannot be asked: then it is not said to be full
    return disk.f_bavail * disk.f_frsize


def statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would commit between them."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if pending.strip():
        yield pending
