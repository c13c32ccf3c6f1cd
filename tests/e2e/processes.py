"""Who still lives of what a test has started, with all that those have started."""

from __future__ import annotations

from pathlib import Path

import pytest

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="looks for processes in /proc"
)


def processes_of(home: Path) -> dict[int, str]:
    """Whoever was started with this MAILOUT_HOME, and lives."""
    found = {}
    mark = f"MAILOUT_HOME={home}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found[int(process.name)] = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


def one_that(home: Path, does: str) -> int | None:
    return next((pid for pid, command in processes_of(home).items() if does in command), None)
