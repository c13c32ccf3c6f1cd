"""`make test` ends what it has started: interrupted tests leave no Postgres on somebody's machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HANGS_SECONDS = 300.0
"""A limit for what hangs, not a measure."""

SERVER = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(3600)"
START = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:], stdout=2, start_new_session=True).pid)"
TESTS = f"""
import os, pathlib, subprocess, sys, tempfile, time

def test_with_a_server_in_a_session_of_its_own():
    pathlib.Path(tempfile.mkdtemp(), "data").write_text("")
    command = [sys.executable, "-c", {SERVER!r}]
    # As pg_ctl does it: whoever has started the server ends at once.
    start = [sys.executable, "-c", {START!r}, *command]
    started = subprocess.run(start, stdout=subprocess.PIPE, check=True).stdout
    note = pathlib.Path(os.environ["NOTE"])
    note.with_suffix(".new").write_text(f"{{os.getpid()}} {{int(started)}} {{tempfile.gettempdir()}}")
    note.with_suffix(".new").rename(note)
    time.sleep(float(os.environ["TEST_SECONDS"]))
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for orphans")


class Run:
    """Tests that have started a server, under `tests.run`."""

    def __init__(self, folder: Path, *arguments: str, seconds: float = 3600) -> None:
        note = folder / "note"
        (folder / "test_it.py").write_text(TESTS)
        (folder / "pytest.ini").write_text("[pytest]\n")
        tests = ["-q", "-p", "no:cacheprovider", "-c", str(folder / "pytest.ini"), str(folder)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.run", sys.executable, "-m", "pytest", *arguments, *tests],
            cwd=ROOT,
            env=os.environ | {"NOTE": str(note), "TEST_SECONDS": str(seconds)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        wait_for(note.exists)
        pytest_pid, server, temporary = note.read_text().split()
        self.tests, self.server, self.temporary = int(pytest_pid), int(server), Path(temporary)

    def end(self) -> int:
        self.process.communicate(timeout=HANGS_SECONDS)
        return self.process.returncode


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + HANGS_SECONDS
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_ctrl_c_leaves_no_process_behind(tmp_path: Path, workers: tuple[str, ...]) -> None:
    run = Run(tmp_path, *workers)
    os.killpg(run.process.pid, signal.SIGINT)  # as a terminal does
    assert run.end() == pytest.ExitCode.INTERRUPTED
    assert not lives(run.server)
    assert not lives(run.tests)
    assert not run.temporary.exists()


def test_terminated_it_leaves_no_process_behind(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.process.terminate()
    assert run.end() == pytest.ExitCode.INTERRUPTED
    assert not lives(run.server)


def test_pytest_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    run = Run(tmp_path)
    os.kill(run.tests, signal.SIGKILL)
    assert run.end() == 128 + signal.SIGKILL
    assert not lives(run.server)


def test_the_tests_end_when_whoever_looks_after_them_is_killed(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.process.kill()
    wait_for(lambda: not lives(run.tests))
    run.end()
    os.kill(run.server, signal.SIGKILL)
    shutil.rmtree(run.temporary)


def test_a_run_to_its_end_has_the_exit_code_of_the_tests(tmp_path: Path) -> None:
    run = Run(tmp_path, seconds=0)
    assert run.end() == pytest.ExitCode.OK
    assert not lives(run.server)
