"""Keeps the logs under `mailout up` small: a part that fails all the time must not fill the disk."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

MAX_LOG_BYTES = 10_000_000
LOG_FILES_KEPT = 3


def rotate_large(logs: Path) -> None:
    """Every log in this folder that has become large."""
    for log in logs.glob("*.log"):
        with suppress(FileNotFoundError):
            if log.stat().st_size > MAX_LOG_BYTES:
                rotate(log)


def rotate(log: Path) -> None:
    """`x.log` becomes `x.log.1`, that `x.log.2`, and so on.

    Copied and emptied, for its writer goes on with the file that it has open (to append). What it writes
    between the two is lost.
    """
    if not log.exists():
        return
    for number in range(LOG_FILES_KEPT - 1, 0, -1):
        with suppress(FileNotFoundError):
            _kept(log, number).replace(_kept(log, number + 1))
    shutil.copyfile(log, _kept(log, 1))
    with log.open("r+b") as file:
        file.truncate()


def _kept(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.{number}")
