"""Ends what `mailout up` has started if `mailout up` itself was killed: nobody else would.

A process of its own at the end of a pipe that `mailout up` alone holds. Every line names the process groups
that are to end with it, in that order; the pipe ends when `mailout up` does, however that comes about. It is
run as a file and imports nothing of mailout: it is there all the time, and small.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

PATIENCE = 20.0


class Watchman:
    """Him, as `mailout up` knows him."""

    def __init__(self) -> None:
        here, self._pipe = os.pipe()
        command = [sys.executable, "-I", __file__]
        self._process = subprocess.Popen(command, stdin=here, start_new_session=True)
        os.close(here)

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def tell(self, groups: Sequence[int]) -> None:
        """Who is to end with us from now on, the first one first."""
        with suppress(BrokenPipeError):  # he has just died; whoever looks after him will see it
            os.write(self._pipe, f"{' '.join(map(str, groups))}\n".encode())

    def dismiss(self) -> None:
        """He does what he was told last."""
        os.close(self._pipe)
        self._process.wait()


def watch(told: Iterable[str]) -> None:
    groups: list[int] = []
    for line in told:
        if line.endswith("\n"):  # what was cut short says nothing
            groups = [int(group) for group in line.split()]
    for group in groups:
        _end(group)


def _end(group: int) -> None:
    """Its first process is asked, so that a worker ends its flow runs; what is left then is ended."""
    until = time.monotonic() + PATIENCE
    with suppress(ProcessLookupError):
        os.kill(group, signal.SIGTERM)
        while time.monotonic() < until:
            time.sleep(0.1)
            os.kill(group, 0)  # is it still there?
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    watch(sys.stdin)
