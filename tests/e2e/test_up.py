"""`mailout up`: one command, everything runs; one signal, nothing is left."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from mailout.queue.model import Status
from tests.e2e.conftest import Commands
from tests.e2e.processes import needs_proc, one_that, processes_of
from tests.ports import free_port
from tests.prefect_server import PrefectServer, answers, running, wait_for

TOKEN = "a token for all these tests"
PEOPLE = [f"{name}@example.org" for name in ("ana", "bo", "cy", "dee", "eli", "fay")]

pytestmark = pytest.mark.timeout(600)


@contextmanager
def up(mailout: Commands, port: int, prefect_port: int, *more: str) -> Iterator[Any]:
    """It, once it says that it is."""
    options = ["--port", str(port), "--prefect-port", str(prefect_port)]
    command = [sys.executable, "-m", "cli", "up", *options, *more]
    log = mailout.folder / "up.log"
    with running(command, cwd=mailout.folder, env=mailout.environment, log=log) as process:
        wait_for(lambda: "mailout is up" in log.read_text() or process.poll() is not None, "it starts")
        assert process.poll() is None, log.read_text()
        yield process


def ask(port: int, letter: Path) -> None:
    asked = httpx.post(
        f"http://127.0.0.1:{port}/send-mailout",
        json={"ref": str(letter)},
        headers={"Authorization": f"Bearer {TOKEN}"},
        trust_env=False,
        timeout=60,
    )
    assert asked.status_code == 202


@needs_proc
def test_it_sends_heals_and_leaves_nothing_behind(mailout: Commands) -> None:
    """Stopped in the middle of a mailout, it leaves neither a process nor a message in doubt."""
    mailout.people(*PEOPLE)
    mailout.settings |= {"SEND_RATE_PER_SEC": "0.5", "API_TOKEN": TOKEN, "LOCK_SECONDS": "30"}
    port, prefect_port = free_port(), free_port()
    gateway, prefect = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{prefect_port}/api"
    log = mailout.folder / "up.log"
    with up(mailout, port, prefect_port, "--workers", "3") as process:
        assert answers(f"{gateway}/health")
        server = PrefectServer(mailout.home / "prefect", prefect)
        wait_for(lambda: len(server.find("work_pools/mailout/workers")) == 3, "three workers")

        first = one_that(mailout.home, "cli gateway")
        assert first is not None
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: one_that(mailout.home, "cli gateway") not in (None, first), "the gateway is back")
        wait_for(lambda: answers(f"{gateway}/health"), "the gateway answers again")

        ask(port, mailout.letter())
        wait_for(mailout.mails, "the first letter")
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, log.read_text()
    assert wait_for(lambda: not processes_of(mailout.home), f"all end: {processes_of(mailout.home)}")
    assert "Traceback" not in log.read_text()

    with closing(mailout.store()) as store:
        cut_off = store.db.read("SELECT id FROM sender_sessions WHERE closed_at IS NULL")
    assert not cut_off, "a sender was cut off instead of being asked to end"
    (stopped,) = mailout.queue()
    names = Counter(mail.name.split("--")[0] for mail in mailout.mails())
    assert (stopped.ledger.in_flight, stopped.ledger.unknown) == (0, 0)
    assert stopped.ledger.sent == sum(names.values()) < len(PEOPLE)
    assert stopped.status in (Status.PENDING, Status.PROCESSING)
    assert stopped.defer_reason is None, "it goes on by itself when everything is up again"


@needs_proc
def test_killed_in_the_middle_of_a_mailout_it_leaves_no_process_behind(mailout: Commands) -> None:
    """A sender that nobody can see any more, and ports that the next `mailout up` finds taken."""
    mailout.people(*PEOPLE)
    mailout.settings |= {"SEND_RATE_PER_SEC": "0.5", "API_TOKEN": TOKEN, "LOCK_SECONDS": "30"}
    port, prefect_port = free_port(), free_port()
    with up(mailout, port, prefect_port) as process:
        ask(port, mailout.letter())
        wait_for(mailout.mails, "the first letter")
        process.kill()
        process.wait()
        wait_for(lambda: not processes_of(mailout.home), f"all end: {processes_of(mailout.home)}")
    (stopped,) = mailout.queue()
    names = Counter(mail.name.split("--")[0] for mail in mailout.mails())
    assert set(names.values()) == {1}
    assert stopped.ledger.balances
    assert stopped.ledger.pending > 0


def test_workers_alone_need_a_server(mailout: Commands) -> None:
    ended = mailout("up", "--only-workers")
    assert (ended.code, "PREFECT_API_URL" in ended.one_line) == (2, True)


def test_a_taken_port_is_named_before_anything_starts(mailout: Commands) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = mailout("up", "--port", str(taken.getsockname()[1]))
    assert ended.code == 2
    assert "--port" in ended.one_line
    assert not (mailout.home / "logs").exists()


def test_a_second_one_in_the_same_home_is_refused(mailout: Commands) -> None:
    """It would share the first one's database of Prefect and, when it ends, stop the first one's senders."""
    mailout.home.mkdir()
    with (mailout.home / "up.lock").open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        ended = mailout("up", "--port", str(free_port()), "--prefect-port", str(free_port()))
    assert (ended.code, "up already" in ended.one_line) == (2, True)
    assert not (mailout.home / "logs").exists()


def test_a_gateway_whose_port_is_taken_says_so_in_one_line(mailout: Commands) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = mailout("gateway", "--port", str(taken.getsockname()[1]))
    assert ended.code == 2
    assert "Address already in use. Is mailout up" in ended.err
