"""Journals as files: `MAILOUT_HOME/journal/<store>/<session>`.

A living session holds a lock on its file, so a file that can be locked belongs to a dead process (also when
it was killed; a stopped one still holds it). Its header is synced to the disk when it is opened; its lines
are not: they outlive the process, not the power. The header tells when power was lost, or when the file is
not the one that was written; then a missing line means nothing.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from stat import S_ISREG

from mailout.adapters.journals import lines as lines
from mailout.adapters.journals.lines import GROWTH_BYTES
from mailout.base.errors import HomeUnwritable, StoreError
from mailout.outbox.delivery.port import DeadJournal
from mailout.outbox.delivery.protocol import Attempt

log = logging.getLogger("mailout.journal")

KEEP_CLOSED = 20
"""So many ended sessions stay known, to notice a store that was set back to an earlier day."""
ANSWER_BYTES = 192
"""Set aside for each message's answer before it is called: once it is sent, there is room to say so."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SESSION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NOT_POSSIBLE = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


def this_boot(boot_id: Path = BOOT_ID, sysctl: str = "sysctl") -> str:
    """Another one after each start of the machine. Empty: it cannot be told, so no journal is complete."""
    try:
        return boot_id.read_text(encoding="ascii").strip()
    except OSError:
        pass  # not Linux
    try:
        asked = subprocess.run([sysctl, "-n", "kern.bootsessionuuid"], capture_output=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.decode("ascii", "replace").strip().replace(" ", "-")


class FileJournal:
    """Fulfils `Journal`, from any thread. Space is set aside before a call: its answer finds room."""

    def __init__(self, path: Path, boot_id: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._size = self._end = self._owed = 0
        self._failed: OSError | None = None
        opening = path.with_suffix(".new")
        self._fd: int | None = os.open(opening, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            self._append(lines.header(boot_id, os.fstat(self._fd)))
            self._begin = self._end
            os.fsync(self._fd)
            opening.rename(path)  # nobody ever sees it unlocked
            _sync_directory(path.parent)
        except BaseException:
            self.abandon()
            opening.unlink(missing_ok=True)
            raise

    def call(self, attempts: Sequence[Attempt]) -> None:
        owed = ANSWER_BYTES * len(attempts)
        with self._lock:
            try:
                if self._fd is not None and not os.fstat(self._fd).st_nlink:
                    raise FileNotFoundError(errno.ENOENT, "it was deleted")
                self._append(lines.call(attempts), owed)
            except OSError as error:
                raise HomeUnwritable.because(self._path, error) from error
            self._owed += owed

    def answered(self, accepted: Mapping[Attempt, str], void: Sequence[Attempt]) -> None:
        with self._lock:
            self._owed -= ANSWER_BYTES * (len(accepted) + len(void))
            try:
                self._append(lines.answered(accepted, void))
            except OSError as error:
                log.warning("answers could not be written to the journal; the store is told: %s", error)

    def close(self, answered_step: int) -> None:
        """In the place of its first lines, where there surely is room; what is not needed is given back."""
        with self._lock:
            if self._fd is not None:
                _mark_closed(self._fd, self._path, answered_step, self._begin)
        self.abandon()

    def abandon(self) -> None:
        with self._lock:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    def _append(self, data: bytes, owed: int = 0) -> None:
        if self._fd is None:
            raise OSError(errno.EBADF, "it is closed")
        if self._failed is not None:
            raise self._failed
        self._set_aside(self._fd, self._end + len(data) + self._owed + owed)
        try:
            _write(self._fd, data, self._end)
        except OSError as error:
            self._failed = error  # half a line may be its end now: nothing may follow it
            raise
        self._end += len(data)

    def _set_aside(self, fd: int, size: int) -> None:
        while self._size < size:
            try:
                _allocate(fd, self._size, GROWTH_BYTES)
            except OSError:
                os.ftruncate(fd, self._size)  # a part of it may have been given
                raise
            self._size += GROWTH_BYTES


class FileJournals:
    """Fulfils `Journals`."""

    def __init__(self, found: Path | Callable[[], Sequence[Path]], boot_id: str | None = None) -> None:
        """In this directory; or in those that are found when they are needed, new ones in the first."""
        self._found = found
        self._boot_id = this_boot() if boot_id is None else boot_id

    @cached_property
    def _directories(self) -> Sequence[Path]:
        return [self._found] if isinstance(self._found, Path) else self._found()

    def open(self, session: str) -> FileJournal:
        directory = self._directories[0]
        try:
            directory.mkdir(parents=True, exist_ok=True)
            return FileJournal(directory / session, self._boot_id)
        except OSError as error:
            raise HomeUnwritable.because(directory, error) from error

    @contextmanager
    def dead(self) -> Iterator[Sequence[DeadJournal]]:
        with ExitStack() as locks:
            ours = {}
            for path in self._paths():
                if (fd := _lock(path)) is not None:
                    locks.callback(os.close, fd)
                    ours[path] = fd
            yield [self._read(path, fd) for path, fd in ours.items()]
            self._drop_old(ours)

    def look(self) -> Sequence[DeadJournal]:
        """All of them, also those of the living, as they are now. Nothing is locked: a sender that begins
        meanwhile would take a dead one's journal for a living one's, and miss what it tells."""
        found = []
        for path in self._paths():
            if (fd := _opened(path)) is not None:
                try:
                    found.append(self._read(path, fd))
                finally:
                    os.close(fd)
        return found

    def _paths(self) -> Sequence[Path]:
        there = (path for directory in self._directories for path in sorted(directory.glob("*")))
        return [path for path in there if _SESSION.fullmatch(path.name)]

    def _drop_old(self, ours: Mapping[Path, int]) -> None:
        """While they are locked: whoever looked at them meanwhile would miss one, and could not say why."""
        newest = sorted(ours, key=lambda path: path.stat().st_mtime, reverse=True)
        for path in newest[KEEP_CLOSED:]:
            if self._read(path, ours[path]).closed_at_step is not None:
                path.unlink()

    def forget(self, session: str, answered_step: int) -> None:
        path = next((one for one in self._paths() if one.name == session), Path(session))
        try:
            fd = os.open(path, os.O_RDWR)
        except OSError as error:
            log.warning("the journal %s could not be marked as done: %s", path, error)
            return
        try:
            _mark_closed(fd, path, answered_step, 0)
        finally:
            os.close(fd)

    def _read(self, path: Path, fd: int) -> DeadJournal:
        try:
            with os.fdopen(fd, "rb", closefd=False) as file:
                file.seek(0)
                found = lines.read(path.name, file.read(), self._boot_id, os.fstat(fd))
                return replace(found, place=str(path))
        except OSError as error:
            raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"The journal {path} cannot be read: {error.strerror or error}.",
        remedy="Nothing is sent: let this user read it. If that cannot be, delete it: what its session had"
        " begun is unknown then.",
    )


def _opened(path: Path) -> int | None:
    """None: somebody has dropped it meanwhile."""
    try:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error) from error


def _lock(path: Path) -> int | None:
    """The open file, if nobody else holds it and nobody has dropped it meanwhile."""
    if (fd := _opened(path)) is None:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file = os.fstat(fd)
        if file.st_nlink and S_ISREG(file.st_mode):
            return fd
    except BlockingIOError:
        pass
    os.close(fd)
    return None


def _mark_closed(fd: int, path: Path, answered_step: int, at: int) -> None:
    """If it cannot be: the next start finds that the store knows all of it already."""
    data = lines.closed(answered_step)
    try:
        _write(fd, data, at)
        os.ftruncate(fd, at + len(data))
    except OSError as error:
        log.warning("the journal %s could not be marked as done: %s", path, error)


def _write(fd: int, data: bytes, at: int) -> None:
    written = os.pwrite(fd, data, at)
    if written != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _allocate(fd: int, start: int, size: int) -> None:
    """Room on the disk, for good. Where the file system cannot promise it, zeros are written there."""
    try:
        os.posix_fallocate(fd, start, size)
    except AttributeError:  # macOS
        _write(fd, bytes(size), start)
    except OSError as error:
        if error.errno not in _NOT_POSSIBLE:
            raise
        _write(fd, bytes(size), start)


def _sync_directory(directory: Path) -> None:
    """Its new name too must outlive the power."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _NOT_POSSIBLE:
            raise
    finally:
        os.close(fd)
