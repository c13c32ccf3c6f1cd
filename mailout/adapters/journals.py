"""Journals as files: `MAILOUT_HOME/journal/<store>/<session>`.

A living session holds a lock on its file, so a file that can be locked belongs to a dead process (also when
it was killed; a stopped one still holds it). Lines are written without fsync: they must outlive the process,
not the power; after a power loss the attempts in doubt are UNKNOWN, as without a journal.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mailout.delivery.protocol import Attempt
from mailout.errors import StoreError
from mailout.ports import DeadJournal

KEEP_CLOSED = 20
"""So many ended sessions stay known, to notice a store that was set back to an earlier day."""


class FileJournal:
    """Fulfils `ports.Journal`. One `write` a call: whole lines or none, from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        opening = path.with_suffix(".new")
        self._fd = os.open(opening, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        opening.rename(path)  # nobody ever sees it unlocked

    def call(self, attempts: Sequence[Attempt]) -> None:
        os.write(self._fd, "".join(f"call {a.id} {a.epoch}\n" for a in attempts).encode())

    def answered(self, accepted: Mapping[Attempt, str], void: Sequence[Attempt]) -> None:
        lines = [f"done {a.id} {a.epoch} {message_id}\n" for a, message_id in accepted.items()]
        lines += [f"void {a.id} {a.epoch}\n" for a in void]
        os.write(self._fd, "".join(lines).encode())

    def close(self, last_step: int) -> None:
        _mark_closed(self._fd, last_step)
        os.close(self._fd)


class FileJournals:
    """Fulfils `ports.Journals`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def open(self, session: str) -> FileJournal:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            return FileJournal(self._directory / session)
        except OSError as error:
            raise StoreError(
                f"The journal in {self._directory} cannot be written: {error.strerror}.",
                remedy="Set MAILOUT_HOME to a folder that you may write to.",
            ) from error

    @contextmanager
    def dead(self) -> Iterator[Sequence[DeadJournal]]:
        with ExitStack() as locks:
            ours = []
            for path in sorted(self._directory.glob("*")) if self._directory.is_dir() else ():
                if path.suffix != ".new" and (fd := _lock(path)) is not None:
                    locks.callback(os.close, fd)
                    ours.append(path)
            yield [_read(path) for path in ours]
            _drop_old(ours)

    def forget(self, session: str, last_step: int) -> None:
        fd = os.open(self._directory / session, os.O_WRONLY)
        try:
            _mark_closed(fd, last_step)
        finally:
            os.close(fd)


def _drop_old(ours: Sequence[Path]) -> None:
    """While they are locked: whoever looked at them meanwhile would miss one, and could not say why."""
    newest = sorted(ours, key=lambda path: path.stat().st_mtime, reverse=True)
    for path in newest[KEEP_CLOSED:]:
        if _read(path).closed_at_step is not None:
            path.unlink()


def _lock(path: Path) -> int | None:
    """The open file, if nobody else holds it and nobody has dropped it meanwhile."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(fd).st_nlink:
            return fd
    except BlockingIOError:
        pass
    os.close(fd)
    return None


def _mark_closed(fd: int, last_step: int) -> None:
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"closed {last_step}\n".encode(), 0)


def _read(path: Path) -> DeadJournal:
    called: set[Attempt] = set()
    accepted: dict[Attempt, str] = {}
    void: set[Attempt] = set()
    closed = None
    whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n")  # a last line cut short never counted
    for line in whole.splitlines():
        match line.split(" "):
            case ["call", id, epoch]:
                called.add(Attempt(id, int(epoch)))
            case ["done", id, epoch, message_id]:
                accepted[Attempt(id, int(epoch))] = message_id
            case ["void", id, epoch]:
                void.add(Attempt(id, int(epoch)))
            case ["closed", step]:
                closed = int(step)
            case _:
                raise StoreError(
                    f"The journal {path} has a line that it should not have: {line!r}.",
                    remedy="Nothing is sent: see who else writes there. Without the file, what its session"
                    " had begun is unknown.",
                )
    return DeadJournal(path.name, frozenset(called), accepted, frozenset(void), closed)
