"""Commands of `mailout` without the second that each takes to import everything.

A process that has imported the commands forks one for each: its own process, with the arguments, environment,
folder, streams and exit code of a command in a shell. How a process begins, what it imports, and how Python
takes it down after the last function of `atexit`, is for tests that start a real one.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, NoReturn

PROJECT = Path(__file__).resolve().parents[1]
ALSO = (
    *("polars", "mailout.adapters.supabase", "mailout.insight.retention.archive_file"),
    *("mailout.letters.audience.people_import", "gateway.app", "tests.warm"),
)


def run_command(
    arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """`mailout` with these arguments, to its end."""
    command = Command(arguments, cwd=cwd, env=env)
    out, err = command.communicate()
    return subprocess.CompletedProcess(list(arguments), command.wait(), out, err)


class Command:
    """`mailout` with these arguments, started: what tests need of a `Popen`. In a session of its own."""

    def __init__(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], one_stream: bool = False
    ) -> None:
        self._out = tempfile.TemporaryFile()  # noqa: SIM115
        self._err = self._out if one_stream else tempfile.TemporaryFile()  # noqa: SIM115
        self._texts = ("", "")
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(_server())
        told = json.dumps({"arguments": list(arguments), "cwd": str(cwd), "env": dict(env)}).encode()
        with Path(os.devnull).open("rb") as nothing:
            files = [file.fileno() for file in (nothing, self._out, self._err)]
            socket.send_fds(self._server, [told], files)
        self._server.shutdown(socket.SHUT_WR)
        self._said = self._server.makefile("rb", buffering=0)
        self.pid = int(self._said.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._said], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("mailout", timeout or 0)
            self.returncode = int(self._said.readline())
            self._texts = (_all_of(self._out), "" if self._err is self._out else _all_of(self._err))
            for file in (self._out, self._err, self._said, self._server):
                file.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        self.wait(timeout)
        return self._texts


def _all_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


@cache
def _server() -> str:
    """Where it listens. It ends with us, however we end: what it reads from is closed then."""
    folder = tempfile.TemporaryDirectory(prefix="mailout-commands-")
    atexit.register(folder.cleanup)
    path = f"{folder.name}/socket"
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    env = kept | {"PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-m", "tests.warm_commands", path]
    server = subprocess.Popen(
        command, cwd=folder.name, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdin is not None
    assert server.stdout is not None
    with server.stdout:
        assert server.stdout.readline(), "it did not start"
    atexit.register(server.wait)
    atexit.register(server.stdin.close)
    return path


# ── the server ──


def serve(path: str) -> None:
    atexit.register(_end)  # before all others, so that it is called after them
    from cli.main import COMMANDS, module_of

    for name in (*map(module_of, COMMANDS), *ALSO):
        importlib.import_module(name)
    assert "prefect" not in sys.modules, "it reads the environment when it is imported"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        print("ready", flush=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            asked, _ = listener.accept()
            with asked:
                if os.fork() == 0:
                    listener.close()
                    _look_after(asked)


def _look_after(asked: socket.socket) -> NoReturn:
    """In a process between: it waits for the command and tells how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    told, files = b"", list[int]()
    while True:
        part, more, _, _ = socket.recv_fds(asked, 1 << 16, 3)
        files += more
        told += part
        if not part:
            break
    child = os.fork()
    if child == 0:
        asked.close()
        _become(files, **json.loads(told))
    for file in files:
        os.close(file)
    with suppress(BrokenPipeError):  # a test that has ended does not want to know
        asked.sendall(f"{child}\n".encode())
        _, status = os.waitpid(child, 0)
        asked.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _become(files: Sequence[int], arguments: list[str], cwd: str, env: dict[str, str]) -> NoReturn:
    """As `python -m cli` in that folder."""
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    sys.argv[:] = ["mailout", *arguments]
    sys.path[0] = cwd
    from cli.main import main

    RETURNED.append(main())
    sys.exit(RETURNED[0])


RETURNED: list[int] = []
"""By the command that this process is."""


def _end() -> None:
    """What is left to do is to free what was imported, which takes longer than most commands."""
    if RETURNED:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(RETURNED[0])


if __name__ == "__main__":
    serve(sys.argv[1])
