"""The whole chain, nothing in it a double: HTTP → event → automation → worker → flow → `.eml`."""

from __future__ import annotations

import fcntl
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx

from cli.prefect_auth import AUTH_FILE
from cli.processes.prefect_api import UP_LOCK, show_running
from mailout.outbox.queue import queue_rows
from tests.e2e.conftest import Commands
from tests.ports import free_port
from tests.prefect_server import PATIENCE, PrefectServer, answers, patiently, running, wait_for

TOKEN = "a token for all these tests"
PEOPLE = [f"{name}@example.org" for name in ("ana", "bo", "cy", "dee", "eli", "fay")]


@contextmanager
def worker(mailout: Commands, server: PrefectServer, name: str) -> Iterator[Any]:
    """A process worker of the pool, as deployments/README.md starts it."""
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", "mailout", "--name", name]
    env = mailout.environment | server.env | {"PREFECT_WORKER_QUERY_SECONDS": "1"}
    with running(command, cwd=mailout.folder, env=env, log=mailout.folder / f"{name}.log") as process:
        yield process


@contextmanager
def gateway(mailout: Commands, server: PrefectServer) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "cli", "gateway", "--port", str(port)]
    env = mailout.environment | server.env | {"API_TOKEN": TOKEN}
    with running(command, cwd=mailout.folder, env=env, log=mailout.folder / "gateway.log"):
        wait_for(lambda: answers(f"http://127.0.0.1:{port}/health"), "the gateway starts")
        yield f"http://127.0.0.1:{port}"


@contextmanager
def without_the_queue(server: PrefectServer) -> Iterator[None]:
    """On a slow machine its schedule would find the request first, and the automation's run would be late."""
    (queue,) = [one for one in server.find("deployments") if one["name"] == "run_queue"]
    server.ask(f"deployments/{queue['id']}/pause_deployment", {})
    try:
        yield
    finally:
        server.ask(f"deployments/{queue['id']}/resume_deployment", {})


@contextmanager
def without_its_schedule(server: PrefectServer) -> Iterator[None]:
    """Every ten minutes it would be faster than the event."""
    (queue,) = [one for one in server.find("deployments") if one["name"] == "run_queue"]
    (schedule,) = queue["schedules"]
    address = f"{server.url}/deployments/{queue['id']}/schedules/{schedule['id']}"

    def switch(on: bool) -> None:
        send = partial(httpx.patch, address, json={"active": on}, trust_env=False, timeout=60)
        patiently(send, "Prefect takes it").raise_for_status()

    switch(False)
    try:
        yield
    finally:
        switch(True)


def runs_of(server: PrefectServer, ref: str) -> list[dict[str, Any]]:
    return [run for run in server.find("flow_runs") if run["parameters"].get("ref") == ref]


def test_a_post_becomes_a_letter(mailout: Commands, deployed: PrefectServer) -> None:
    mailout.people(*PEOPLE)
    ref = str(mailout.letter())
    with without_the_queue(deployed), gateway(mailout, deployed) as url, worker(mailout, deployed, "first"):
        for new in (True, False, False):
            answer = httpx.post(
                f"{url}/send-mailout",
                json={"ref": ref},
                headers={"Authorization": f"Bearer {TOKEN}"},
                trust_env=False,
                timeout=PATIENCE,
            )
            assert (answer.status_code, answer.json()["new"]) == (202, new)
        wait_for(lambda: runs_of(deployed, ref), "the automation starts a run")
        wait_for(lambda: len(mailout.mails()) == len(PEOPLE), "the letters are written")
        wait_for(
            lambda: [run["state_name"] for run in runs_of(deployed, ref)] == ["Completed"], "the run ends"
        )
    (run,) = runs_of(deployed, ref)
    assert run["parameters"] == {"ref": ref, "test": None, "if_ready": False, "asked": True}
    assert run["name"] == "Hello (rehearsal)"
    assert Counter(mail.name.split("--")[0] for mail in mailout.mails()) == Counter(PEOPLE)
    store = mailout.store()
    assert queue_rows.asked(store, waiting=0) == []
    store.close()


def test_what_falls_due_is_taken_up_without_waiting_for_a_schedule(
    mailout: Commands, deployed: PrefectServer
) -> None:
    mailout.people(*PEOPLE)
    planned = mailout("send", mailout.letter(subject="In a moment"), "--direct", SEND_DELAY="1")
    assert planned.code == 75
    with without_its_schedule(deployed), gateway(mailout, deployed), worker(mailout, deployed, "second"):
        wait_for(lambda: len(mailout.mails()) == len(PEOPLE), "the letters are written")
        asked = {"sort": "START_TIME_DESC", "limit": 20}
        named = wait_for(
            lambda: [
                run
                for run in deployed.ask("flow_runs/filter", asked)
                if run["name"] == "In a moment (rehearsal)" and run["end_time"]
            ],
            "the run ends",
        )
        assert [run["state_name"] for run in named] == ["Completed"]
        above = {"id": {"any_": [named[0]["parent_task_run_id"]]}}
        (queue,) = deployed.ask("flow_runs/filter", {"task_runs": above})
    assert (queue["name"], queue["auto_scheduled"]) == ("the queue", False)


def test_send_uses_the_server_of_a_running_up(mailout: Commands, deployed: PrefectServer) -> None:
    """Its run is then where people look for runs, and no second server is started."""
    mailout.home.mkdir(mode=0o700)
    letter = mailout.letter(subject="From a terminal")
    with (mailout.home / UP_LOCK).open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        show_running(mailout.home, deployed.url)
        (mailout.home / AUTH_FILE).write_text(deployed.auth, encoding="utf-8")
        sent = mailout("send", letter, "--test")
    assert sent.code == 0, sent.err
    assert f"its run shows on {deployed.url.removesuffix('/api')}/runs" in sent.err
    assert [run["name"] for run in runs_of(deployed, str(letter))] == ["From a terminal (test)"]
    assert not (mailout.home / "prefect" / "prefect.db").exists()
