"""Faults of what `mailout up` runs: Prefect's server and its database, workers, flow runs, the gateway."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from tests.chaos.handed_in import API_TOKEN, PASSWORD, requests
from tests.chaos.places import Place, Stage, wait_for
from tests.e2e.processes import one_that, processes_of
from tests.e2e.supabase_lite.server import SECRET
from tests.e2e.supabase_lite.server import running as supabase
from tests.ports import free_port
from tests.prefect_server import ROOT, running

PARTS = {"worker": "worker start", "server": "prefect server start", "gateway": "cli gateway"}
STRIKES = tuple(
    itertools.product(("sender", "worker", "server", "gateway"), (signal.SIGKILL, signal.SIGSTOP))
)
STANDSTILL = 4.0
OFTEN = 0.1
"""Seconds between two looks at the store: those who send need the time more."""
SETTINGS: dict[str, Any] = {"API_TOKEN": API_TOKEN, "ADMIN_PASSWORD": PASSWORD, "LOCK_SECONDS": "12"}


@contextmanager
def under_up(stage: Stage, mode: str, store: str, people: int) -> Iterator[Place]:
    """SQLite, or Supabase's HTTP API over a real Postgres."""
    rate: dict[str, Any] = {"SEND_RATE_PER_SEC": "8" if mode == "bulk" else "2.5"}
    if store == "sqlite":
        yield stage.place(mode, store, people, **SETTINGS, **rate)
        return
    folder = Path(tempfile.mkdtemp(prefix="supabase-", dir=stage.folder))
    with supabase(folder, f"lite_{stage.name}") as lite:
        own = Stage(stage.folder, f"{stage.name}_up", address=lite.database, seed=stage.seed)
        try:
            told: dict[str, Any] = {"SUPABASE_URL": lite.url, "SUPABASE_SERVICE_ROLE_KEY": SECRET}
            yield own.place(mode, store, people, **SETTINGS, **rate, **told)
        finally:
            own.close()


@contextmanager
def up(place: Place, port: int) -> Iterator[Any]:
    env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    env |= {"PYTHONPATH": str(ROOT), **place.job.env}
    if place.producer is not None:
        env["NOTIFY_DB"] = str(place.job.home / "producer.db")
    command = [sys.executable, "-m", "cli", "up", "--port", str(port), "--prefect-port", str(free_port())]
    home = place.job.home
    log = home.parent / f"{home.name}.log"
    with running(command, cwd=home, env=env, log=log) as process:
        wait_for(lambda: "mailout is up" in log.read_text() or process.poll() is not None, every=OFTEN)
        assert process.poll() is None, log.read_text()
        yield process


def ask(place: Place, port: int) -> None:
    if place.job.mode == "notifications":
        return  # its queue is watched
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as http:
        for path, body, headers in set_of(requests(place, copies=1)):
            http.post(path, content=body, headers=headers).raise_for_status()


def set_of(asked: Any) -> list[Any]:
    """Each once."""
    return list({str(one): one for one in asked}.values())


def parts_struck(place: Place, dose: int) -> int:
    """One part after the other is killed, or stands still for some seconds; the supervisor is left alone."""
    port, hits = free_port(), 0
    with up(place, port):
        ask(place, port)
        for part, how in STRIKES[-dose:]:
            if not _some_more(place) or not _strike(place, part, how):
                break  # it was over before: what is left strikes the next mailout
            hits += 1
        wait_for(place.is_over, every=OFTEN)
    _wait_for_end(place)
    return hits


def _some_more(place: Place) -> bool:
    target = place.total() + 3
    wait_for(lambda: place.total() >= target or place.is_over(), every=OFTEN)
    return not place.is_over()


def _strike(place: Place, part: str, how: signal.Signals) -> bool:
    """As soon as there is one: what was struck before may only just begin again."""
    while not place.is_over():
        pid = _sender(place) if part == "sender" else one_that(place.job.home, PARTS[part])
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, how)
                if how is signal.SIGSTOP:
                    time.sleep(STANDSTILL)
                    os.kill(pid, signal.SIGCONT)
                return True
        time.sleep(OFTEN)
    return False


def _sender(place: Place) -> int | None:
    found = place.rows("select worker from sender_sessions where closed_at is null")
    pids = [int(row["worker"].rpartition("-")[2]) for row in found]
    return next((pid for pid in pids if pid in processes_of(place.job.home)), None)


def prefect_lost(place: Place, dose: int) -> int:
    """Everything is killed in mid-send, and Prefect's database is gone; then `mailout up` again."""
    port = free_port()
    with up(place, port) as process:
        ask(place, port)
        place.reach(20)
        for pid in (process.pid, *processes_of(place.job.home)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
    _wait_for_end(place)
    shutil.rmtree(place.job.home / "prefect")
    with up(place, port):
        wait_for(place.is_over, every=OFTEN)
    _wait_for_end(place)
    return 1


def _wait_for_end(place: Place) -> None:
    wait_for(lambda: not processes_of(place.job.home), every=OFTEN)
