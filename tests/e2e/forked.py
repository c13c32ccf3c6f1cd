"""`mailout …` as a process of its own, without waiting for Python to start and import it each time.

One process has imported what every command needs and forks for each call: the child gets the call's folder,
environment, arguments and pipes, and runs `python -m cli` from there to its own exit. Hundreds of calls take
minutes less. Prefect is not imported beforehand: it reads the environment while it is imported.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

LENGTH = 4


def call(arguments: Sequence[str], cwd: Path, env: Mapping[str, str]) -> tuple[int, str, str]:
    """Exit code, what it printed, and what it complained about."""
    asked = json.dumps([list(arguments), str(cwd), dict(env)]).encode()
    ended, said = os.pipe()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
            server.connect(_server())
            socket.send_fds(server, [len(asked).to_bytes(LENGTH)], [out.fileno(), err.fileno(), said])
            os.close(said)
            server.sendall(asked)
            with os.fdopen(ended, "rb") as answer:
                code = os.waitstatus_to_exitcode(int(answer.read()))
        out.seek(0)
        err.seek(0)
        return code, out.read().decode(), err.read().decode()


@cache
def _server() -> str:
    """Where it listens; it ends with this process."""
    folder = tempfile.mkdtemp(prefix="mailout-forks-")
    address = f"{folder}/socket"
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.forked", address],
        cwd=Path(__file__).resolve().parents[2],
        env=kept,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"

    def end() -> None:
        with process:  # closes its pipes, too
            process.kill()
        Path(address).unlink()
        Path(folder).rmdir()

    atexit.register(end)
    return address


def _take(connection: socket.socket) -> tuple[Any, list[int]]:
    size, fds, _, _ = socket.recv_fds(connection, LENGTH, 3)
    left, body = int.from_bytes(size), b""
    while len(body) < left:
        body += connection.recv(left - len(body))
    return json.loads(body), list(fds)


def _become(arguments: list[str], cwd: str, env: dict[str, str], out: int, err: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    for fd, number in ((nothing, 0), (out, 1), (err, 2)):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    sys.path[0] = cwd
    sys.argv = ["mailout", *arguments]


def serve(address: str) -> None:
    """Returns in each child, which is then the command."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(address)
        listening.listen()
        print("ready", flush=True)
        while True:
            if 0 in select.select([listening, 0], [], [])[0]:
                sys.exit()  # whoever calls is gone
            connection, _ = listening.accept()
            (arguments, cwd, env), (out, err, said) = _take(connection)
            if not os.fork():
                break
            connection.close()
            for fd in (out, err, said):
                os.close(fd)
    # This one waits for the command, so that the next call need not.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    connection.close()
    if command := os.fork():
        _, status = os.waitpid(command, 0)
        os.write(said, str(status).encode())
        os._exit(0)
    os.close(said)
    _become(arguments, cwd, env, out, err)


if __name__ == "__main__":
    import importlib
    import pkgutil

    import cli.commands
    import cli.engine
    import mailout.adapters.notion
    import mailout.adapters.ses
    import mailout.adapters.supabase  # noqa: F401

    for module in pkgutil.iter_modules(cli.commands.__path__, "cli.commands."):
        importlib.import_module(module.name)
    assert "prefect" not in sys.modules
    assert threading.active_count() == 1, "a process with threads must not fork"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()
    serve(sys.argv[1])
    runpy.run_module("cli", run_name="__main__", alter_sys=True)
