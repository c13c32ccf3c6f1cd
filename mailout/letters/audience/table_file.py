"""A file of people is read by a process of its own, with limits on its memory and time.

A workbook of a kilobyte can ask for more memory than any machine has, and the library that reads it then ends
its process. That process is never the gateway, nor the command that waits for the rows.
"""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import suppress
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

from mailout.base.errors import MailoutError, UsageError
from mailout.letters.audience.tables import FileTable, read_tables, require_narrow

MOST_MEMORY_BYTES = 3 * 1024**3
MOST_CPU_SECONDS = 120
MOST_WAIT_SECONDS = 600
MOST_ROWS_BYTES = 4 * 1024**3
"""Of the rows as they are handed over, on disk."""
MOST_CELLS = 60_000_000
"""Rows times columns: short rows are filled up to the width of the header."""
ROWS_A_LINE = 1_000
HEAD = ("header", "file", "encoding", "readings", "sheet")
"""What is handed over of a table before its rows."""
REFUSED_EXIT_CODE = 3
"""How the child ends when it has said what is wrong with the file."""
_AT_ONCE = threading.BoundedSemaphore(2)
"""Files that one process has read at a time: many uploads must not take the machine's memory together."""


def open_table(
    path: Path, headers: Collection[str], *, encoding: str | None = None, sheet: str | None = None
) -> FileTable:
    """The first table of a file."""
    return next(open_tables(path, headers, encoding=encoding, sheet=sheet))


def open_tables(
    path: Path, headers: Collection[str], *, encoding: str | None = None, sheet: str | None = None
) -> Iterator[FileTable]:
    """One text, the sheets of a workbook, or the files of an archive; each is read before the next.

    The header is the first row with one of `headers` (as `key` writes them), or else the first row.
    A UsageError says what to do about a file that cannot be read.
    """
    with _opened(path) as file:
        said = _said(file, [str(path), sorted(headers), encoding, sheet])
        ended = next(said)
    if ended == REFUSED_EXIT_CODE:
        message, remedy = next(said)
        said.close()
        raise UsageError(message, remedy=remedy)
    if ended != 0:
        said.close()
        raise UsageError(
            f"{path} cannot be read: it needs more memory or time than a file of people should.",
            remedy="Delete empty rows and columns and save it again, or save it as CSV.",
        )
    return _each(said)


def _each(said: Iterator[Any]) -> Iterator[FileTable]:
    """Lines with a table's number: its head, then its rows. What nobody wanted of it is passed over."""
    for _, lines in groupby(said, key=itemgetter(0)):
        parts = map(itemgetter(1), lines)
        head = next(parts)
        rows = ((line, cells) for part in parts for line, cells in part)
        yield FileTable(**head | {"readings": [tuple(one) for one in head["readings"]]}, rows=rows)


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise UsageError(f"There is no file {path}.", remedy="Check the path.") from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder.", remedy="Name the CSV file in it.") from None
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}.", remedy="Check that it is a file that you may read."
        ) from None


def _said(file: IO[bytes], asked: Sequence[Any]) -> Generator[Any, None, None]:
    """How the child ended, and then each line that it wrote."""
    with tempfile.TemporaryFile() as written:
        yield _run(file, json.dumps([file.fileno(), *asked]).encode(), written)
        written.seek(0)
        yield from map(json.loads, written)


def _run(file: IO[bytes], asked: bytes, written: IO[bytes]) -> int:
    """It gets no setting of ours: it has no use for a secret."""
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "POLARS_MAX_THREADS": "1",
    }
    command = [sys.executable, "-P", "-m", __name__]
    pipe, nothing, fds = subprocess.PIPE, subprocess.DEVNULL, [file.fileno()]
    with (
        _AT_ONCE,
        subprocess.Popen(
            command, stdin=pipe, stdout=written, stderr=nothing, pass_fds=fds, env=environment
        ) as child,
    ):
        try:
            child.communicate(asked, timeout=MOST_WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
    return child.returncode


# ── In the child ──


def _limit() -> None:
    for what, most in (
        (resource.RLIMIT_AS, MOST_MEMORY_BYTES),
        (resource.RLIMIT_CPU, MOST_CPU_SECONDS),
        (resource.RLIMIT_FSIZE, MOST_ROWS_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    with suppress(OSError):  # only Linux has it: the kernel that runs out of memory ends this one first
        Path("/proc/self/oom_score_adj").write_text("1000")


def _counted(name: str, table: FileTable) -> Iterator[tuple[int, Sequence[str]]]:
    """The rows, as long as there is room for them where they go."""
    for number, (line, cells) in enumerate(chain([(1, table.header)], table.rows), start=1):
        require_narrow(name, cells, line)
        if number * len(table.header) > MOST_CELLS:
            raise UsageError(
                f"{name} has more than {MOST_CELLS:,} cells.",
                remedy="Delete empty rows and columns and save it again, or import it in parts.",
            )
        yield line, cells


def _write(out: IO[bytes], value: Any) -> None:
    out.write(json.dumps(value).encode() + b"\n")


def main() -> int:
    _limit()
    fd, name, headers, encoding, sheet = json.load(sys.stdin)
    out = io.open(1, "wb", closefd=False)  # noqa: UP020, SIM115
    try:
        with io.open(fd, "rb") as file:  # noqa: UP020
            tables = read_tables(file.read(), name, frozenset(headers), encoding=encoding, sheet=sheet)
        for number, table in enumerate(tables):
            rows = _counted(name, table)
            next(rows)  # the header itself
            _write(out, [number, {of: getattr(table, of) for of in HEAD}])
            while part := list(islice(rows, ROWS_A_LINE)):
                _write(out, [number, part])
        out.flush()
    except MemoryError:
        return 1
    except Exception as error:  # noqa: BLE001 (whatever a file makes the libraries raise is about the file)
        out.seek(0)
        out.truncate()
        known = (error.message, error.remedy) if isinstance(error, MailoutError) else _unreadable(name, error)
        _write(out, known)
        out.flush()
        return REFUSED_EXIT_CODE
    return 0


def _unreadable(name: str, error: Exception) -> tuple[str, str]:
    why = (str(error).splitlines() or [type(error).__name__])[0]
    return f"{name} cannot be read: {why}.", "Save it as .xlsx without a password, or as CSV."


if __name__ == "__main__":
    sys.exit(main())
