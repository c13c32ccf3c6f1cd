"""Addresses and mails are for the user who sends them: nobody else on the machine may read the files."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from mailout.base.errors import SettingsError

log = logging.getLogger("mailout.files")

OTHERS = stat.S_IRWXG | stat.S_IRWXO
OWN_FILES = (
    *("mailout.db*", "archive*", "certs", "journal", "logs", "media", "outbox", "prefect*", "reports"),
    *("imports", "notion-webhook-tokens.txt", "up.lock", "THIS-IS-A-DEMO.txt"),
)


def keep_private() -> None:
    """Whatever this process writes, and those that it starts. Every entry point begins with it."""
    os.umask(OTHERS)


def close_to_others(home: Path) -> None:
    """Once, for what was there before: as long as others can enter the folder, it is looked at again.

    Only what mailout made is changed, and the folder itself only if it holds nothing else.
    """
    home = home.resolve()
    if not _is_open(home):
        return
    ours = _ours(home)
    closed = sum(_close(path) for top in ours if _is_open(top) for path in _with_contents(top))
    if set(home.iterdir()) <= ours:
        closed += _close(home)
    if closed:
        log.info("Others on this machine could read %s; %d files and folders were closed.", home, closed)


def open_to_others(home: Path) -> list[Path]:
    """What they can read of it."""
    home = home.resolve()
    return sorted(filter(_is_open, _ours(home))) if _is_open(home) else []


def _ours(home: Path) -> set[Path]:
    return {path for pattern in OWN_FILES for path in home.glob(pattern)}


def _with_contents(top: Path) -> Iterator[Path]:
    """Itself last: if this is cut short, the next time begins again."""
    if top.is_dir():
        for folder, _, files in os.walk(top, topdown=False):
            yield from (Path(folder, name) for name in files)
            yield Path(folder)
    else:
        yield top


def _is_open(path: Path) -> bool:
    """A link is not: what it leads to is not ours."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISLNK(mode) and bool(mode & OTHERS)


def _close(path: Path) -> bool:
    """Whether anything changed. What belongs to another user stays as it is, and `doctor` says so."""
    if not _is_open(path):
        return False
    try:
        path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~OTHERS)
    except OSError:
        return False
    return True


def make_home(folder: Path) -> Path:
    """`MAILOUT_HOME`, made if it is not there, and closed to others."""
    home = folder.absolute()
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        close_to_others(home)
    except OSError as error:
        raise SettingsError(
            f"MAILOUT_HOME: {home} cannot be made: {error.strerror}.",
            remedy="Set it to a folder that you may write to.",
        ) from error
    return home
