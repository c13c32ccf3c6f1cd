"""Ends what a command has started in other sessions if the command itself was killed: nobody else would.

A process of its own at the end of a pipe that the command alone holds. Every line names the process groups
that are to end with it, those before a semicolon before the others; the pipe ends when the command does,
however that comes about. It is run as a file and imports nothing of mailout: it is there all the time, and
small.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

ORPHAN_STOP_SECONDS = 5.0
"""For each of the two: no flow may go on for ten seconds when nobody looks after it any more."""


class OrphanGuard:
    """The process, as the command knows it."""

    def __init__(self) -> None:
        here, self._pipe = os.pipe()
        command = [sys.executable, "-I", __file__]
        try:
            self._process = subprocess.Popen(command, stdin=here, start_new_session=True)
        except OSError:
            os.close(self._pipe)
            raise
        finally:
            os.close(here)

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def set_stages(self, stages: Sequence[Sequence[int]]) -> None:
        """Which process groups are to end with us from now on; all of a stage at once."""
        line = ";".join(" ".join(map(str, groups)) for groups in stages)
        with suppress(BrokenPipeError):  # it has just died; whoever looks after it will see that
            os.write(self._pipe, f"{line}\n".encode())

    def dismiss(self) -> None:
        """It does what it was given last."""
        os.close(self._pipe)
        self._process.wait()


def watch(lines: Iterable[str]) -> None:
    stages: list[list[int]] = []
    for line in lines:
        if line.endswith("\n"):  # what was cut short says nothing
            stages = [[int(group) for group in stage.split()] for stage in line.split(";")]
    for groups in stages:
        _end(groups)


def _end(groups: Sequence[int]) -> None:
    """The first process of each is asked, so that a worker ends its flow runs; what is left then is ended."""
    until = time.monotonic() + ORPHAN_STOP_SECONDS
    there = [group for group in groups if _signal(group, signal.SIGTERM)]
    while there and time.monotonic() < until:
        time.sleep(0.1)
        there = [group for group in there if _signal(group, 0)]
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def _signal(process: int, number: int) -> bool:
    """Whether it is still there."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    watch(sys.stdin)
