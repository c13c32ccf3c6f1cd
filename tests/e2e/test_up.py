"""`mailout up`: one command, everything runs; one signal, nothing is left."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx

from cli.interrupted import interrupted_mailouts
from cli.processes.prefect_api import headers
from mailout.app import wiring
from mailout.base.settings import load_settings
from mailout.kinds.single_mails.companies import Scope, add_token, new_token
from mailout.outbox.queue.mailout import Status
from tests.clocks import FakeClock
from tests.e2e.conftest import Commands
from tests.e2e.processes import needs_proc, one_that, processes_of
from tests.ports import free_port
from tests.prefect_server import (
    DATABASE,
    LESS_WORK,
    PATIENCE,
    PrefectServer,
    answers,
    prepare_database,
    running,
    wait_for,
)
from tests.producer.database import ProducerDatabase

TOKEN = "a token for all these tests"
PEOPLE = [f"{name}@example.org" for name in ("ana", "bo", "cy", "dee", "eli", "fay")]


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
        timeout=PATIENCE,
    )
    assert asked.status_code == 202


def server_of(mailout: Commands, prefect_port: int) -> PrefectServer:
    auth = (mailout.home / "prefect-auth").read_text("utf-8").strip()
    return PrefectServer(mailout.home / "prefect", f"http://127.0.0.1:{prefect_port}/api", auth)


def started_by_event(server: PrefectServer) -> bool:
    """Not by the queue's schedule, which would find the request within a minute."""
    (sends,) = [one["id"] for one in server.find("deployments") if one["name"] == "send_mailout"]
    return any(run["deployment_id"] == sends for run in server.find("flow_runs"))


def nobody_gets_in_without_the_string(server: PrefectServer) -> None:
    """Whoever may start a flow run can have it run any command."""
    deployment = next(one["id"] for one in server.find("deployments") if one["name"] == "run_queue")
    attack = {"job_variables": {"command": "touch attacked"}}
    wrong = headers({"PREFECT_API_AUTH_STRING": "mailout:guessed"})
    for sent in ({}, wrong, {"Host": "attacker.example.org"}):
        for path, body in ((f"deployments/{deployment}/create_flow_run", attack), ("flow_runs/filter", {})):
            answer = httpx.post(
                f"{server.url}/{path}", json=body, headers=sent, trust_env=False, timeout=PATIENCE
            )
            assert answer.status_code == 401, (path, sent)
    foreign = {"Origin": "https://attacker.example.org"} | headers(server.env)
    answer = httpx.get(f"{server.url}/admin/version", headers=foreign, trust_env=False, timeout=PATIENCE)
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers


def with_a_producer(mailout: Commands) -> ProducerDatabase:
    """Its queue asks for one notification; what is sent goes to a folder, so a copy of it is marked."""
    producer = ProducerDatabase(mailout.folder / "producer.db")
    producer.one("zoe@example.org")
    mailout.settings |= {
        "NOTIFY_DB": str(producer.path),
        "NOTIFY_SOURCE": "seats",
        "NOTIFY_BASE_URL": "https://app.example.org",
    }
    return producer


def notified(mailout: Commands, server: PrefectServer) -> bool:
    flows = {one["id"]: one["name"] for one in server.find("flows")}
    running = [run for run in server.find("flow_runs") if flows[run["flow_id"]] == "dispatch_notifications"]
    return len(running) == len(list(mailout.home.glob("outbox/single/zoe@*.eml"))) == 1


def letters(mailout: Commands) -> list[str]:
    """To whom the letter has gone."""
    return [mail.name.split("--")[0] for mail in mailout.mails() if mail.parent.name != "single"]


def a_single_mail_is_sent(gateway: str, token: str, server: PrefectServer) -> None:
    """A run of drain_outbox is there for it without anybody's doing."""
    with httpx.Client(base_url=gateway, trust_env=False, timeout=60) as client:
        client.headers["Authorization"] = f"Bearer {token}"
        mail = {"to": "gil@example.org", "subject": "Your receipt", "html": "<p>Thank you.</p>"}
        answer = client.post("/v1/email/send", json=mail)
        assert answer.status_code == 202, answer.text
        story = f"/v1/email/{answer.json()['outboxId']}"
        wait_for(lambda: client.get(story).json()["status"] == "SENT", "the single mail is sent")
    (drain,) = [one["id"] for one in server.find("deployments") if one["name"] == "drain_outbox"]
    wait_for(
        lambda: any(run["deployment_id"] == drain for run in server.find("flow_runs")),
        "a run of drain_outbox",
    )


@needs_proc
def test_it_sends_heals_and_leaves_nothing_behind(mailout: Commands) -> None:
    """Stopped or killed in the middle of a mailout. One test, since each start takes half a minute."""
    mailout.people(*PEOPLE)
    producer = with_a_producer(mailout)
    mailout.settings |= {"SEND_RATE_PER_SEC": "0.05", "API_TOKEN": TOKEN, "LOCK_SECONDS": "30"}
    mailout.settings |= LESS_WORK
    prepare_database(mailout.home / "prefect" / DATABASE)
    port, prefect_port = free_port(), free_port()
    stopped_it_leaves_no_message_in_doubt(mailout, port, prefect_port)
    assert [row["fanout_status"] for row in producer.rows()] == ["pending"], "it was a rehearsal"
    producer.path = mailout.home / "notify" / "seats.db"
    assert [(row["fanout_status"], row["fanout_attempts"]) for row in producer.rows()] == [("sent", 1)]
    killed_it_leaves_no_process(mailout, port, prefect_port)


def stopped_it_leaves_no_message_in_doubt(mailout: Commands, port: int, prefect_port: int) -> None:
    gateway = f"http://127.0.0.1:{port}"
    log = mailout.folder / "up.log"
    token, known = new_token("shop", tuple(Scope), None)
    with closing(mailout.store()) as store:
        add_token(store, known)
    with up(mailout, port, prefect_port, "--workers", "2") as process:
        assert answers(f"{gateway}/health")
        server = server_of(mailout, prefect_port)
        wait_for(lambda: len(server.find("work_pools/mailout/workers")) == 2, "two workers")
        nobody_gets_in_without_the_string(server)

        first = one_that(mailout.home, "cli gateway")
        assert first is not None
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: one_that(mailout.home, "cli gateway") not in (None, first), "the gateway is back")
        wait_for(lambda: answers(f"{gateway}/health"), "the gateway answers again")

        wait_for(lambda: notified(mailout, server), "the producer's notification, by one long run")
        a_single_mail_is_sent(gateway, token, server)
        ask(port, mailout.letter())
        wait_for(lambda: started_by_event(server), "the gateway's event starts the flow")
        wait_for(lambda: letters(mailout), "the first letter")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, log.read_text()
    assert wait_for(lambda: not processes_of(mailout.home), f"all end: {processes_of(mailout.home)}")
    assert "Traceback" not in log.read_text()
    assert "home/prefect-auth" in log.read_text()
    secret = (mailout.home / "prefect-auth").read_text("utf-8").strip()
    assert not [path for path in (log, *mailout.home.glob("logs/*")) if secret in path.read_text("utf-8")]
    assert [path for path in (mailout.home, *mailout.home.rglob("*")) if path.stat().st_mode & 0o077] == []

    with closing(mailout.store()) as store:
        interrupted = store.db.read("SELECT id FROM sender_sessions WHERE closed_at IS NULL")
        store.revoke_token(known.id)
    assert not interrupted, "a sender was interrupted instead of being asked to end"
    (stopped,) = mailout.queue()
    assert (stopped.ledger.in_flight, stopped.ledger.unknown) == (0, 0)
    assert stopped.ledger.sent == len(letters(mailout)) < len(PEOPLE)
    assert stopped.status in (Status.PENDING, Status.PROCESSING)
    assert stopped.defer_reason is None


def killed_it_leaves_no_process(mailout: Commands, port: int, prefect_port: int) -> None:
    """A sender that nobody can see any more, and ports that the next `mailout up` finds taken."""
    sent = len(letters(mailout))
    with up(mailout, port, prefect_port) as process:
        wait_for(lambda: len(letters(mailout)) > sent, "what was stopped goes on by itself")
        # Its worker, too, which could have ended its runs: they have sessions of their own.
        worker = one_that(mailout.home, "worker start")
        assert worker is not None
        os.kill(worker, signal.SIGKILL)
        process.kill()
        process.wait()
        wait_for(lambda: not processes_of(mailout.home), f"all end: {processes_of(mailout.home)}")
    (stopped,) = mailout.queue()
    names = Counter(mail.name.split("--")[0] for mail in mailout.mails())
    assert set(names.values()) == {1}
    assert stopped.ledger.balances
    assert stopped.ledger.pending > 0


def test_what_was_interrupted_is_found_and_said(mailout: Commands) -> None:
    """After a crash nobody should wonder whether the letter is lost."""
    mailout.people(*PEOPLE)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    clock = FakeClock()
    engine = wiring.build(load_settings(env=mailout.settings), clock)
    id = engine.sending.freeze(engine.intake.enqueue(str(mailout.letter())).id).id
    with closing(engine.store) as store:
        store.start(id, f"here-{os.getpid()}")
        assert list(interrupted_mailouts(store, "here", 120)) == []
        store.start(id, f"there-{gone.pid}")
        assert list(interrupted_mailouts(store, "here", 120)) == []
        store.start(id, f"here-{gone.pid}")
        (line,) = interrupted_mailouts(store, "here", 120)
        assert (
            "“(rehearsal) Hello”, interrupted when 0 of 6 were sent. It goes on by itself, within 3 minutes"
            in line
        )
        store.start(id, f"there-{gone.pid}")
        clock.sleep(1)
        assert "within 2 minutes" in next(interrupted_mailouts(store, "here", 0))
        clock.wall -= 9 * 3600  # it had been ahead
        assert "within 2 minutes" in next(interrupted_mailouts(store, "here", 120))


def test_workers_alone_need_a_server(mailout: Commands) -> None:
    ended = mailout("up", "--only-workers")
    assert (ended.code, "PREFECT_API_URL" in ended.one_line) == (2, True)


def test_a_package_of_somebody_else_that_prefect_would_run_instead_is_named(mailout: Commands) -> None:
    (mailout.folder / "flows").mkdir()
    (mailout.folder / "tasks.py").write_text("", encoding="utf-8")
    (mailout.folder / "flows" / "__init__.py").write_text("", encoding="utf-8")
    ended = mailout("up", PYTHONSAFEPATH="1")  # as the installed command: its own modules come first
    assert ended.code == 2
    assert "and are not: flows, tasks." in ended.one_line


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
