"""`python -m tests.run COMMAND…`: the command, and an end to everything that it has started.

The tests start Postgres, Prefect servers and senders, many in sessions of their own. pytest cannot end them
any more once it is interrupted with Ctrl-C or killed. Here each process that loses its parent becomes a child
of this one (Linux calls it a subreaper), which ends all that is still there after the command. The tests'
temporary files are in one folder, which goes with them.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

SUBREAPER, PARENT_DEATH_SIGNAL = 36, 1
"""Linux's numbers for prctl: PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG."""

INTERRUPTED_SECONDS = 20
"""For pytest to end by itself after an interruption."""

TERMINATED_SECONDS = 10.0
"""For each process to end by itself before it is killed."""


def run(command: Sequence[str]) -> int:
    libc = ctypes.CDLL(None)
    libc.prctl(SUBREAPER, 1)
    folder = tempfile.mkdtemp(prefix="mailout-tests-")
    Path(folder).chmod(0o1777)  # as /tmp: some tests run as nobody
    # pytest's own folders stay where they are: what a failed test has written may be looked at.
    env = os.environ | {"TMPDIR": folder, "PYTEST_DEBUG_TEMPROOT": tempfile.gettempdir()}

    def begin() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # which a shell's background jobs ignore
        libc.prctl(PARENT_DEATH_SIGNAL, int(signal.SIGINT))

    process = subprocess.Popen(command, env=env, preexec_fn=begin)

    def interrupted(number: int, _: object) -> None:
        if number != signal.SIGINT:  # a terminal gives Ctrl-C to pytest as well
            process.send_signal(signal.SIGINT)
        signal.alarm(INTERRUPTED_SECONDS)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    signal.signal(signal.SIGALRM, lambda *_: process.kill())
    code = _wait_for(process.pid)
    signal.alarm(0)
    end_all()
    shutil.rmtree(folder, ignore_errors=True)
    return code


def _wait_for(command: int) -> int:
    """Its exit code, as a shell says it. Others that end meanwhile are children by adoption."""
    while True:
        pid, status = os.wait()
        if pid == command:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def end_all() -> None:
    """Every process that descends from this one."""
    asked = set[int]()
    until = time.monotonic() + TERMINATED_SECONDS
    while there := descendants():
        late = time.monotonic() > until
        for pid in there if late else there - asked:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
        asked |= there
        time.sleep(0.05)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue


def descendants() -> set[int]:
    children = dict[int, list[int]]()
    for process in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            # The name, in brackets, may hold anything; after it: the state, then the parent.
            parent = int(process.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(process.parent.name))
    found, new = set[int](), [os.getpid()]
    while new:
        new = [child for parent in new for child in children.get(parent, ())]
        found.update(new)
    return found


if __name__ == "__main__":
    if sys.platform != "linux":
        sys.exit(subprocess.call(sys.argv[1:]))  # no other system lets a process adopt orphans
    sys.exit(run(sys.argv[1:]))
