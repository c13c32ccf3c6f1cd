"""Keeps processes running: each in a session of its own, its output in a file, started again when it dies or
no longer answers.

A session of its own, because Ctrl-C in a terminal reaches every process of the terminal's session at once,
and the parts have to end in order. So nothing would end them if we were killed: the orphan guard does it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from cli.processes.listening import answers
from cli.processes.orphan_guard import OrphanGuard

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
WELL_AFTER = 60.0
"""A process that ran this long was healthy: its next death counts as the first."""
HEALTH_SECONDS, ANSWER_SECONDS, HANG_SECONDS, FIRST_ANSWER_SECONDS = 5.0, 60.0, 180.0, 300.0
"""How often a part with an address is asked, how long an answer may take, how long it may be silent, and
before its first answer. What lives on a machine that has far too much to do must not be taken for dead."""
MAX_LOG_BYTES, LOG_FILES_KEPT = 10_000_000, 3
"""A part that fails all the time must not fill the disk."""


@dataclass
class Part:
    """One process and all that it starts."""

    name: str
    command: Sequence[str]
    log: Path
    ends_first: bool = False  # it needs the others to end well
    process: subprocess.Popen[bytes] | None = None
    groups: set[int] = field(default_factory=set)  # of this process and of those before it
    deaths: int = 0
    started_at: float = 0.0
    restart_at: float = 0.0
    health: str | None = None  # an address that answers while the process is well
    answered_at: float | None = None  # since it was started
    temporary: Path | None = None  # a folder of its own for temporary files

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None


class Supervisor:
    """`tell` gets a line for whatever a person should know."""

    def __init__(self, logs: Path, env: Mapping[str, str], tell: Callable[[str], None]) -> None:
        self.parts: list[Part] = []
        self.logs = logs
        self.env = dict(env)
        self._tell = tell
        self._orphan_guard: OrphanGuard | None = None
        logs.mkdir(parents=True, exist_ok=True)

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        ends_first: bool = False,
        health: str | None = None,
        temporary: Path | None = None,
    ) -> Part:
        log = self.logs / f"{name}.log"
        rotate(log)
        part = Part(name, command, log, ends_first, health=health, temporary=temporary)
        self.parts.append(part)
        self._spawn(part)
        if health is not None:
            threading.Thread(target=self._keep_asking, args=(part, health), daemon=True).start()
        return part

    def look_after(self) -> None:
        """Start again what has died or hangs, each time a little later. To be called every now and then."""
        now = time.monotonic()
        rotate_large(self.logs)
        if self.parts and not (self._orphan_guard is not None and self._orphan_guard.lives):
            self._tell_orphan_guard()
        for part in self.parts:
            if part.runs and not self._end_if_it_hangs(part, now):
                continue
            if part.process is not None:
                code, part.process = part.process.returncode, None
                part.groups = {group for group in part.groups if _signal(group, 0)}
                self._tell_orphan_guard()
                self._start_later(part, f"ended ({_how(code)})")
            elif now >= part.restart_at:
                self._spawn(part)

    def _start_later(self, part: Part, why: str) -> None:
        now = time.monotonic()
        part.deaths = 1 if now - part.started_at > WELL_AFTER else part.deaths + 1
        wait = min(FIRST_WAIT * 2 ** min(part.deaths - 1, 10), LONGEST_WAIT)
        part.restart_at = now + wait
        self._tell(f"{part.name} {why}; again in {wait:.0f} s. See {part.log}")

    def _keep_asking(self, part: Part, health: str) -> None:
        while part in self.parts:
            if part.runs and answers(health, ANSWER_SECONDS):
                part.answered_at = time.monotonic()
            time.sleep(HEALTH_SECONDS)

    def _end_if_it_hangs(self, part: Part, now: float) -> bool:
        """Whether it did."""
        if part.health is None or part.process is None:
            return False
        silent_since, patience = part.started_at, FIRST_ANSWER_SECONDS
        if part.answered_at is not None:
            silent_since, patience = part.answered_at, HANG_SECONDS
        if now - silent_since <= patience:
            return False
        self._tell(f"{part.name} has not answered for {now - silent_since:.0f} s; it is ended.")
        _signal(part.process.pid, signal.SIGKILL)
        part.process.wait()
        return True

    def stop(self, parts: Sequence[Part], seconds: float) -> None:
        """Ask them to end, wait, and leave nothing of theirs behind.

        Only they themselves are asked: a flow run that got the signal, too, would take itself for cancelled.
        """
        for part in parts:
            if part.process is not None:
                part.process.terminate()
        until = time.monotonic() + seconds
        for part in parts:
            if part.process is not None:
                try:
                    part.process.wait(max(0.1, until - time.monotonic()))
                except subprocess.TimeoutExpired:
                    self._tell(f"{part.name} does not end; it is ended.")
        for part in parts:
            for group in part.groups:
                _signal(group, signal.SIGKILL)
            if part.process is not None:
                part.process.wait()
                part.process = None
            if part.temporary is not None:
                clear_after_prefect(part.temporary)
            if part in self.parts:
                self.parts.remove(part)
        self._tell_orphan_guard()

    def _spawn(self, part: Part) -> None:
        """Later, if there is no space for its log or no memory for it: the other parts go on meanwhile."""
        part.started_at, part.answered_at = time.monotonic(), None
        try:
            part.process = self._process(part)
        except OSError as error:
            self._start_later(part, f"cannot be started ({error.strerror or error})")
            return
        part.groups.add(part.process.pid)
        self._tell_orphan_guard()

    def _process(self, part: Part) -> subprocess.Popen[bytes]:
        env = self.env
        if part.temporary is not None:
            part.temporary.mkdir(parents=True, exist_ok=True, mode=0o700)
            clear_after_prefect(part.temporary)
            env = {**env, "TMPDIR": str(part.temporary)}
        with part.log.open("ab") as log:
            return subprocess.Popen(
                part.command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _tell_orphan_guard(self) -> None:
        """Workers end before the server that they speak to."""
        if self._orphan_guard is not None and not self._orphan_guard.lives:
            self._orphan_guard.dismiss()
            self._orphan_guard = None
        try:
            self._orphan_guard = self._orphan_guard or OrphanGuard()
        except OSError:
            return  # no process can be started just now: the next look tries again
        stages = [[part for part in self.parts if part.ends_first is first] for first in (True, False)]
        self._orphan_guard.set_stages(
            [[group for part in parts for group in part.groups] for parts in stages]
        )
        if not self.parts:
            self._orphan_guard.dismiss()
            self._orphan_guard = None


def _signal(group: int, number: int) -> bool:
    """Whether any process of it is still running."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True


def clear_after_prefect(temporary: Path) -> None:
    """What a worker of Prefect's leaves when it is killed: each run's environment, secrets and all. Nothing
    else: a run that has outlived its worker may have files here."""
    for folder in (*temporary.glob("prefect-workspace-attempt-*"), temporary / "runner_storage"):
        shutil.rmtree(folder, ignore_errors=True)


def rotate_large(logs: Path) -> None:
    """Every log in this folder that has become large."""
    for log in logs.glob("*.log"):
        with suppress(OSError):
            if log.stat().st_size > MAX_LOG_BYTES:
                rotate(log)


def rotate(log: Path) -> None:
    """`x.log` becomes `x.log.1`, that `x.log.2`, and so on.

    Copied and emptied, for its writer goes on with the file that it has open (to append). What it writes
    between the two is lost. Without space for a copy, a large log is emptied, and a short one goes on.
    """
    if not log.exists():
        return
    copy = log.with_name(f"{log.name}.copy")
    try:
        shutil.copyfile(log, copy)
    except OSError:
        with suppress(OSError):
            copy.unlink()
        if log.stat().st_size <= MAX_LOG_BYTES:
            return
    else:
        for number in range(LOG_FILES_KEPT - 1, 0, -1):
            with suppress(OSError):
                _kept(log, number).replace(_kept(log, number + 1))
        copy.replace(_kept(log, 1))
    with log.open("r+b") as file:
        file.truncate()


def _kept(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.{number}")


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
