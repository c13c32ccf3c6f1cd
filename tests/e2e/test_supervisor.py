"""What keeps the parts of `mailout up` running, and ends them."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.processes import orphan_guard
from cli.processes import supervisor as module
from cli.processes.supervisor import Part, Supervisor
from tests.prefect_server import ROOT, running, wait_for

SLEEP = "import time; time.sleep(600)"
STUBBORN = (
    f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); {SLEEP}"
)
PARENT = (
    f"import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', {SLEEP!r}]);"
    f" print(child.pid, flush=True); {SLEEP}"
)


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    monkeypatch.setattr(module, "FIRST_WAIT", 0.01)
    made = Supervisor(tmp_path / "logs", os.environ, told.append)
    yield made
    made.stop(list(made.parts), seconds=0.1)


def start(supervisor: Supervisor, code: str, name: str = "part") -> Part:
    return supervisor.start(name, [sys.executable, "-c", code])


def alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_bytes().rpartition(b") ")[2][:1] != b"Z"
    except FileNotFoundError:
        return False


def test_who_lives_and_answers_no_more_is_started_again(
    supervisor: Supervisor, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server of Prefect's that hangs would start no flow until somebody noticed."""
    monkeypatch.setattr(module, "HEALTH_SECONDS", 0.01)
    well = threading.Event()
    well.set()
    monkeypatch.setattr(module, "answers", lambda url, seconds: well.is_set())
    command = [sys.executable, "-c", SLEEP]
    part = supervisor.start("server", command, health="http://127.0.0.1/health")
    wait_for(lambda: part.answered_at, "it answers")
    supervisor.look_after()
    assert part.process is not None
    first = part.process.pid
    well.clear()
    monkeypatch.setattr(module, "HANG_SECONDS", 0.05)

    def is_another() -> bool:
        supervisor.look_after()
        return part.process is not None and part.process.pid != first

    wait_for(is_another, "it is started again")
    assert not alive(first)
    assert any("server has not answered for" in line for line in told)


def test_who_dies_is_started_again_each_time_later(supervisor: Supervisor, told: list[str]) -> None:
    """A part that cannot start would otherwise burn a core and fill the disk with its log."""
    part = start(supervisor, "raise SystemExit(3)")

    def died_thrice() -> bool:
        supervisor.look_after()
        return part.deaths >= 3

    wait_for(died_thrice, "it dies and is started again")
    assert len(told) == 3
    assert all("exit code 3" in line for line in told)
    assert part.restart_at - part.started_at >= 4 * module.FIRST_WAIT


def test_what_a_killed_worker_has_left_goes_when_it_is_started_again(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    """Prefect writes down the environment of each run, and with it all secrets that are set there."""
    temporary = tmp_path / "worker-1"
    code = f"import tempfile; tempfile.mkdtemp(prefix='prefect-workspace-attempt-'); {SLEEP}"
    part = supervisor.start("worker-1", [sys.executable, "-c", code], temporary=temporary)
    (left,) = wait_for(lambda: list(temporary.iterdir()), "it has a temporary folder")
    (temporary / "of a run").touch()
    assert part.process is not None
    part.process.kill()

    def is_another() -> bool:
        supervisor.look_after()
        return {path.name for path in temporary.iterdir()} - {left.name, "of a run"} != set()

    wait_for(is_another, "it is started again")
    assert not left.exists()
    assert (temporary / "of a run").exists()
    assert temporary.stat().st_mode & 0o077 == 0


def test_who_lives_is_left_alone(supervisor: Supervisor, told: list[str]) -> None:
    part = start(supervisor, SLEEP)
    before = part.process
    supervisor.look_after()
    assert (part.process, told) == (before, [])


def test_what_a_part_has_started_ends_with_it(supervisor: Supervisor) -> None:
    """A flow that goes on after Ctrl-C would send mail that nobody watches."""
    part = start(supervisor, PARENT)
    grandchild = int(wait_for(lambda: part.log.read_text().strip(), "the grandchild starts"))
    supervisor.stop([part], seconds=10)
    wait_for(lambda: not alive(grandchild), "the grandchild ends")
    assert supervisor.parts == []


KILLED = """\
import os, sys, time
from pathlib import Path
from cli.processes.supervisor import Supervisor

supervisor = Supervisor(Path(sys.argv[1]), os.environ, print)
for number, code in enumerate(sys.argv[2:]):
    supervisor.start(f"part-{number}", [sys.executable, "-c", code])
print("started", flush=True)
while True:
    supervisor.look_after()
    time.sleep(0.05)
"""
POLITE = (
    "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: (print('asked', flush=True), sys.exit()));"
    f" print('ready', flush=True); {SLEEP}"
)


def processes_with(mark: str) -> set[int]:
    """Whoever was started with this in the environment, and lives."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                found.add(int(process.name))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("guard_died", [False, True], ids=["at once", "its guard having died before"])
def test_nothing_is_left_of_a_supervisor_that_is_killed(tmp_path: Path, guard_died: bool) -> None:
    """Its ports would stay taken and its flows go on, with nobody to end them."""
    mark, logs = f"KILLED={tmp_path}", tmp_path / "logs"
    command = [sys.executable, "-c", KILLED, str(logs), PARENT, POLITE]
    env = os.environ | {"KILLED": str(tmp_path), "PYTHONPATH": str(ROOT)}
    with running(command, cwd=tmp_path, env=env, log=tmp_path / "log") as killed:
        spoken = [logs / f"part-{number}.log" for number in (0, 1)]
        wait_for(lambda: all(log.exists() and log.read_text() for log in spoken), "all have started")
        if guard_died:
            (guard,) = [pid for pid in processes_with(mark) if "orphan_guard" in command_of(pid)]
            os.kill(guard, signal.SIGKILL)
            wait_for(
                lambda: [pid for pid in processes_with(mark) - {guard} if "orphan_guard" in command_of(pid)],
                "another one takes its place",
            )
        assert len(processes_with(mark)) == 5  # itself, two parts, what the first has started, the guard
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        wait_for(lambda: not processes_with(mark), "everybody ends")
    assert "asked" in spoken[1].read_text()


def test_who_will_not_end_does_not_outlive_a_killed_supervisor_for_long(tmp_path: Path) -> None:
    """All of them at once, and none has more than its few seconds: it may be sending."""
    logs = tmp_path / "logs"
    command = [sys.executable, "-c", KILLED, str(logs), *[STUBBORN] * 6]
    env = os.environ | {"KILLED": str(tmp_path), "PYTHONPATH": str(ROOT)}
    with running(command, cwd=tmp_path, env=env, log=tmp_path / "log") as killed:
        spoken = [logs / f"part-{number}.log" for number in range(6)]
        wait_for(lambda: all(log.exists() and log.read_text() for log in spoken), "all have started")
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        # One after the other they would take 6 × ORPHAN_STOP_SECONDS at least.
        wait_for(
            lambda: not processes_with(f"KILLED={tmp_path}"),
            "everybody ends",
            5 * orphan_guard.ORPHAN_STOP_SECONDS,
        )
    assert 2 * orphan_guard.ORPHAN_STOP_SECONDS <= 10


def command_of(pid: int) -> str:
    return (Path("/proc") / str(pid) / "cmdline").read_text()


def test_who_will_not_end_is_ended_and_that_is_said(supervisor: Supervisor, told: list[str]) -> None:
    part = start(supervisor, STUBBORN)
    wait_for(lambda: "ready" in part.log.read_text(), "it starts")
    supervisor.stop([part], seconds=0.2)
    assert told == ["part does not end; it is ended."]


def test_a_log_that_grows_is_rotated_while_its_writer_goes_on(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway under attack wrote 20 MB of tracebacks in forty seconds."""
    monkeypatch.setattr(module, "MAX_LOG_BYTES", 100_000)
    part = start(supervisor, "while True: print('x' * 99, flush=True)")

    def rotated() -> bool:
        supervisor.look_after()
        return len(list(part.log.parent.iterdir())) == 1 + module.LOG_FILES_KEPT

    wait_for(rotated, "the log is rotated")
    wait_for(lambda: part.log.stat().st_size, "it goes on")
    assert {path.name for path in part.log.parent.iterdir()} == {
        "part.log",
        *(f"part.log.{number}" for number in range(1, 1 + module.LOG_FILES_KEPT)),
    }
    assert part.runs
    assert b"\0" not in part.log.read_bytes()


def test_the_last_log_is_kept_when_everything_is_started_anew(supervisor: Supervisor) -> None:
    """Why it died yesterday is in yesterday's log."""
    first = start(supervisor, "print('yesterday', flush=True)")
    wait_for(lambda: "yesterday" in first.log.read_text(), "it has spoken")
    second = start(supervisor, SLEEP)
    assert "yesterday" in second.log.with_name("part.log.1").read_text()


def no_space(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_ends_nothing_and_a_large_log_gives_its_space_back(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unsubscribe links would end with it; and half a copy would take the last space that there is."""
    part = start(supervisor, SLEEP)
    part.log.write_bytes(b"x" * 200_000)

    def half(source: Path, copy: Path) -> None:
        copy.write_bytes(source.read_bytes()[:1000])
        no_space()

    monkeypatch.setattr("shutil.copyfile", half)
    monkeypatch.setattr(module, "MAX_LOG_BYTES", 100_000)
    supervisor.look_after()
    assert [(path.name, path.stat().st_size) for path in part.log.parent.iterdir()] == [("part.log", 0)]
    assert part.runs


def test_a_short_log_that_cannot_be_copied_is_continued(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    (supervisor.logs / "part.log").write_text("yesterday\n")
    monkeypatch.setattr("shutil.copyfile", no_space)
    part = start(supervisor, "print('today', flush=True)")
    wait_for(lambda: part.log.read_text() == "yesterday\ntoday\n", "it goes on below")


def test_who_cannot_be_started_just_now_is_started_later(
    supervisor: Supervisor, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No space for its log, no memory for its process."""
    with monkeypatch.context() as patch:
        patch.setattr("subprocess.Popen", no_space)
        part = start(supervisor, SLEEP)
        supervisor.look_after()
        assert not part.runs
    assert told[0].startswith("part cannot be started (No space left on device); again in ")

    def runs() -> bool:
        supervisor.look_after()
        return part.runs

    wait_for(runs, "it is started")
