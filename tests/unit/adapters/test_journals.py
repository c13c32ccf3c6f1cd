"""Journals as files, which several senders of one machine look after at once."""

from __future__ import annotations

import fcntl
import uuid
from pathlib import Path

import pytest

from mailout.adapters import journals
from mailout.adapters.journals import KEEP_CLOSED, FileJournals


def closed(folder: Path, count: int) -> FileJournals:
    made = FileJournals(folder)
    for number in range(count):
        made.open(str(uuid.UUID(int=number))).close(number)
    return made


def test_only_so_many_ended_sessions_stay(tmp_path: Path) -> None:
    """Every start of a sender opens each of them and asks the store for it: after a day of sending, two
    thousand, and more than a process may have open."""
    with closed(tmp_path, KEEP_CLOSED + 3).dead() as dead:
        assert len(dead) == KEEP_CLOSED + 3
    assert len(list(tmp_path.iterdir())) == KEEP_CLOSED


def test_one_that_another_sender_drops_just_now_is_nobodys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers that begin together clear up the same folder: neither may end in a traceback."""
    ours = closed(tmp_path, 1)
    flock = fcntl.flock

    def faster(fd: int, how: int) -> None:
        (tmp_path / str(uuid.UUID(int=0))).unlink(missing_ok=True)
        flock(fd, how)

    monkeypatch.setattr(journals.fcntl, "flock", faster)
    with ours.dead() as dead:
        assert dead == []
