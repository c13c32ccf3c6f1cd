"""Whether a run can tell that the `mailout up` above it has gone. That it then ends: tests/e2e/test_up.py."""

from __future__ import annotations

import fcntl
from pathlib import Path

from flows.orphans import is_up


def test_the_lock_says_whether_it_is_up(tmp_path: Path) -> None:
    lock = tmp_path / "up.lock"
    assert not is_up(lock)
    with lock.open("a+") as held:
        assert not is_up(lock)
        fcntl.flock(held, fcntl.LOCK_EX)
        assert is_up(lock)
        assert is_up(lock)
    assert not is_up(lock)
