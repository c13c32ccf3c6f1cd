"""What `mailout up` costs while nothing is to be done, and how soon a letter leaves when something is.

Processor time of all its processes, those that have ended included: it is the same on a busy machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import yaml

from deployments import PREFECT_YAML
from tests.bench.homes import engine_with
from tests.ports import free_port
from tests.stubs.notion import TOKEN as NOTION_TOKEN
from tests.stubs.notion_pages import p
from tests.stubs.notion_workspace import LETTER, MAILOUTS, mailout_page, workspace
from tests.stubs.running import NotionStub, notion_stub

ROOT = Path(__file__).resolve().parents[2]
TICKS = os.sysconf("SC_CLK_TCK")
TOKEN = "a token for the bench, long enough"
SETTLED = 60.0
"""Seconds after the start: the first runs of the schedules are not idleness."""
PATIENCE = 300.0


def run(seconds: float = 120.0) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place, notion_stub() as notion:
        folder = Path(place)
        notion.load(workspace(pages={LETTER: mailout_page("Hello", "Draft")}, blocks={LETTER: [p("Words")]}))
        with up(folder, notion) as (process, port):
            time.sleep(SETTLED)
            _stay_between_runs(seconds)
            before, _ = cost(process.pid)
            time.sleep(seconds)
            after, bytes_used = cost(process.pid)
            asked = soon(folder, lambda: ask(port, folder / "home" / "letter.md"))
            ready = soon(folder, lambda: make_ready(notion))
    return {
        "cpu_seconds_a_minute": (after - before) / seconds * 60,
        "memory_mb": bytes_used / 1e6,
        "runs_a_day": scheduled_runs(),
        "post_to_mail_seconds": asked,
        "ready_to_mail_seconds": ready,
    }


def _stay_between_runs(seconds: float) -> None:
    """How many scheduled runs there are is a row of its own."""
    while (wait := _until_idle(time.time(), seconds)) > 0.0:
        time.sleep(wait)


def _until_idle(now: float, seconds: float) -> float:
    """How long to wait for a run to be over; 0.0: none has just begun, or begins in so many seconds."""
    for schedule in _schedules():
        since = (now - datetime.fromisoformat(schedule["anchor_date"]).timestamp()) % schedule["interval"]
        if since < SETTLED:
            return SETTLED - since
        if schedule["interval"] - since < seconds:
            return float(schedule["interval"] - since + SETTLED)
    return 0.0


def scheduled_runs() -> int:
    return round(sum(86_400 / schedule["interval"] for schedule in _schedules()))


def _schedules() -> list[dict[str, Any]]:
    deployments = yaml.safe_load(PREFECT_YAML.read_text(encoding="utf-8"))["deployments"]
    schedules = [schedule for one in deployments for schedule in one.get("schedules", [])]
    return [one for one in schedules if one.get("active", True) and "interval" in one]


@contextmanager
def up(folder: Path, notion: NotionStub) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    engine, _ = engine_with(folder / "home", 3)
    engine.store.close()
    port, prefect_port = free_port(), free_port()
    env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ} | {
        "PYTHONPATH": str(ROOT),
        "MAILOUT_HOME": str(folder / "home"),
        "FROM_EMAIL": "news@example.org",
        "ORG_NAME": "The Gardeners",
        "ORG_ADDRESS": "1 Garden Lane",
        "UNSUBSCRIBE_BASE_URL": "https://example.org/unsubscribe",
        "UNSUBSCRIBE_SECRET": "not a secret",
        "API_TOKEN": TOKEN,
        "NOTION_TOKEN": NOTION_TOKEN,
        "NOTION_BASE_URL": notion.url,
        "NOTION_DB_MAILOUTS": MAILOUTS,
    }
    command = [sys.executable, "-m", "cli", "up", "--port", str(port), "--prefect-port", str(prefect_port)]
    log = folder / "up.log"
    with log.open("wb") as written:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=written, stderr=written)
    try:
        until = time.monotonic() + PATIENCE
        while "mailout is up" not in log.read_text("utf-8"):
            assert process.poll() is None and time.monotonic() < until, log.read_text("utf-8")  # noqa: PT018
            time.sleep(0.5)
        yield process, port
    finally:
        process.terminate()
        process.wait(PATIENCE)


def cost(root: int) -> tuple[float, int]:
    """Processor seconds of a process and all below it, ended ones included; and memory in bytes, where what
    processes share (Python itself, its libraries) is counted once."""
    rows: dict[int, list[str]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            rows[int(stat.parent.name)] = stat.read_text("utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
    below = {root}
    while more := {pid for pid, row in rows.items() if int(row[1]) in below and pid not in below}:
        below |= more
    mine = [rows[pid] for pid in below if pid in rows]
    ticks = sum(int(value) for row in mine for value in row[11:15])
    return ticks / TICKS, sum(memory(pid) for pid in below)


def memory(pid: int) -> int:
    """Bytes of its own, and its share of those that it has in common with others."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def ask(port: int, letter: Path) -> None:
    httpx.post(
        f"http://127.0.0.1:{port}/send-mailout",
        json={"ref": str(letter)},
        headers={"Authorization": f"Bearer {TOKEN}"},
        trust_env=False,
        timeout=60,
    ).raise_for_status()


def make_ready(notion: NotionStub) -> None:
    notion.load(workspace(pages={LETTER: mailout_page("Hello", "Ready")}, blocks={LETTER: [p("Words")]}))


def soon(folder: Path, begin: Callable[[], None]) -> float:
    """Seconds until the first mail of one more mailout is written."""
    outbox = folder / "home" / "outbox"
    there, started = mailouts(outbox), time.monotonic()
    begin()
    while mailouts(outbox) == there:
        assert time.monotonic() - started < PATIENCE, "nothing was sent"
        time.sleep(0.1)
    return time.monotonic() - started


def mailouts(outbox: Path) -> set[str]:
    return {mail.parent.name for mail in outbox.glob("*/*.eml")}
