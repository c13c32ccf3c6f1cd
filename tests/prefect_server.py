"""A real Prefect server in a home of its own, with everything of ours deployed to it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx

from cli.processes.prefect_api import headers
from cli.processes.prefect_home import build_database
from tests.cache import cached
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 300.0
"""For what takes seconds on a free machine: a limit for what hangs, not a measure."""
LESS_WORK = {"PREFECT_SERVER_REGISTER_BLOCKS_ON_START": "false", "PYTHONTZPATH": ""}
"""For a server: nobody here uses blocks. Whenever it reads a schedule, it looks for every time zone there is:
in hundreds of files of the system's, unless it is told of none. Those of a package are in one list."""


def wait_for(what: Callable[[], Any], why: str, patience: float = PATIENCE) -> Any:
    """Asked less and less often: what takes long is kept from its work by questions."""
    began = time.monotonic()
    while not (found := what()):
        waited = time.monotonic() - began
        assert waited < patience, f"waited in vain: {why}"
        time.sleep(min(0.1 + waited / 10, 1.0))
    return found


def answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False, timeout=60).status_code == 200
    except httpx.TransportError:
        return False


def patiently(send: Callable[[], httpx.Response], why: str) -> httpx.Response:
    """Its answer, however long a busy machine takes. For requests that may be sent twice.

    Prefect's database is SQLite: 503 means that somebody else is writing just now.
    """

    def answer() -> httpx.Response | None:
        try:
            got = send()
        except httpx.TransportError:
            return None
        return None if got.status_code == 503 else got

    got: httpx.Response = wait_for(answer, why)
    return got


@contextmanager
def running(command: list[str], *, cwd: Path, env: Mapping[str, str], log: Path) -> Iterator[Any]:
    """A process in a session of its own; in the end all of that session is gone."""
    with log.open("wb") as written:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@dataclass(frozen=True)
class PrefectServer:
    """Where it is, and how to ask it."""

    home: Path
    url: str
    auth: str = ""

    @property
    def env(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return (
            kept
            | {
                "PYTHONPATH": str(ROOT),
                "PREFECT_HOME": str(self.home),
                "PREFECT_API_URL": self.url,
                "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
                "DO_NOT_TRACK": "1",
            }
            | LESS_WORK
            | ({"PREFECT_API_AUTH_STRING": self.auth} if self.auth else {})
        )

    def prefect(self, *arguments: str, cwd: Path = ROOT) -> str:
        ended = subprocess.run(
            [sys.executable, "-m", "prefect", *arguments],
            cwd=cwd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def ask(self, path: str, body: Mapping[str, Any]) -> Any:
        """What it answers. A new run needs an `idempotency_key`: on a busy machine it is asked for again."""
        url, told = f"{self.url}/{path}", headers(self.env)
        got = patiently(
            lambda: httpx.post(url, json=body, headers=told, trust_env=False, timeout=60),
            f"Prefect answers {path}",
        )
        got.raise_for_status()
        return got.json()

    def find(self, what: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.ask(f"{what}/filter", {})
        return rows


DATABASE = "prefect.db"


def prepare_database(path: Path) -> None:
    """What a new server's migrations make, which takes it longer than all the rest of its start. They run
    once for each version of Prefect, as `mailout up` runs them; the demo's test has them run by a server."""
    with cached(f"prefect-{version('prefect')}") as made:
        if not (made / DATABASE).exists():
            with tempfile.TemporaryDirectory(dir=made) as building:
                env = PrefectServer(Path(building), "").env
                del env["PREFECT_API_URL"]
                assert build_database(env, made / "log"), (made / "log").read_text("utf-8")
                (Path(building) / DATABASE).rename(made / DATABASE)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(0o600)
        shutil.copyfile(made / DATABASE, path)


@contextmanager
def prefect_server(home: Path) -> Iterator[PrefectServer]:
    port = free_port()
    server = PrefectServer(home, f"http://127.0.0.1:{port}/api")
    prepare_database(home / DATABASE)
    env = {name: value for name, value in server.env.items() if name != "PREFECT_API_URL"}
    command = [sys.executable, "-m", "prefect", "server", "start", "--no-ui", "--port", str(port)]
    with running(command, cwd=home, env=env, log=home / "server.log"):
        wait_for(lambda: answers(f"{server.url}/health"), "Prefect's server starts")
        yield server
