"""Machines that share a store, an SES account and a Prefect pool: each takes its part, and any may die."""

from __future__ import annotations

import bisect
import os
import signal
import socket
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mailout.base import ids
from mailout.outbox.delivery.protocol import Attempt
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback.ingest import ingest
from mailout.outbox.feedback.port import Received
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import Status
from tests.chaos.senders import nobody_twice_and_nobody_lost
from tests.contract.postgres import empty
from tests.e2e.supabase_lite.machines import Machine, machine
from tests.e2e.supabase_lite.server import Lite
from tests.prefect_server import PrefectServer, running, wait_for
from tests.ses_events import ses_event
from tests.stubs.ses_control import SesStub, ses_stub

RATE = 14
PEOPLE = 180
LOCK = 10.0
"""Of machines that die: so long the others wait."""
SLOW_MS, BRISK_MS = 1200, 100
"""Either way one lane of one machine cannot keep the pace. Slow while the next machine starts, however long
that takes, for minutes; brisk once it is there."""
LETTER = ids.mailout_id("chaos")
QUEUE = "several-workers"
"""A work queue of these tests' own: the schedules' runs are not for their workers."""


@dataclass
class Worker:
    """A machine's worker. One run at a time, so that the next one is another machine's."""

    machine: Machine
    process: Any

    def kill(self, sender: int) -> None:
        """As when a machine loses its power: the worker, and its run, which is in a session of its own."""
        assert sender in self.children()
        os.kill(sender, signal.SIGKILL)
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def children(self) -> set[int]:
        listed = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return {int(pid) for file in listed for pid in file.read_text().split()}


@dataclass
class Place:
    """Everything that the machines share."""

    prefect: PrefectServer
    lite: Lite
    ses: SesStub
    folder: Path

    @contextmanager
    def worker(self, name: str) -> Iterator[Worker]:
        """As deployments/README.md starts one. A quarter of its lock is a call's limit."""
        made = machine(
            self.lite,
            self.folder / name,
            PEOPLE,
            MAILOUT_TRANSPORT="ses",
            AWS_ENDPOINT_URL_SESV2=self.ses.url,
            AWS_ACCESS_KEY_ID="test",
            AWS_SECRET_ACCESS_KEY="test",
            AWS_REGION="eu-west-1",
            SEND_RATE_PER_SEC=str(RATE),
            SEND_CONCURRENCY="1",  # `auto` would keep the pace alone, and no other machine would be needed
            LOCK_SECONDS=str(LOCK),
        )
        options = ["--pool", "mailout", "--work-queue", QUEUE, "--name", name, "--limit", "1"]
        command = [sys.executable, "-m", "prefect", "worker", "start", *options]
        env = self.prefect.env | made.environment | {"PREFECT_WORKER_QUERY_SECONDS": "1"}
        with running(command, cwd=made.path, env=env, log=made.path / "worker.log") as process:
            yield Worker(made, process)

    def run(self, flow: str, **parameters: Any) -> str:
        """Start a flow, as the schedule or a person would; the run's id."""
        (deployment,) = [one for one in self.prefect.find("deployments") if one["name"] == flow]
        asked = {"parameters": parameters, "work_queue_name": QUEUE, "state": {"type": "SCHEDULED"}}
        asked["idempotency_key"] = uuid.uuid4().hex  # asked again, it is the same run
        return str(self.prefect.ask(f"deployments/{deployment['id']}/create_flow_run", asked)["id"])

    def state_of(self, run: str) -> str:
        (found,) = self.prefect.ask("flow_runs/filter", {"flow_runs": {"id": {"any_": [run]}}})
        return str(found["state_name"])

    def accepted(self) -> dict[str, int]:
        counts: dict[str, int] = self.ses.accepted()["by_address"]
        return counts

    def shares(self) -> dict[int, int]:
        """How many messages each process has begun, by its pid."""
        with psycopg.connect(self.lite.database) as connection:
            rows = connection.execute(
                "select s.worker, count(*) from email_outbox o join sender_sessions s on s.id = o.session_id"
                " group by s.worker"
            ).fetchall()
        assert {worker.rpartition("-")[0] for worker, _ in rows} <= {socket.gethostname()}
        return {int(worker.rpartition("-")[2]): n for worker, n in rows}

    def fullest_second(self) -> int:
        """By the stub's own log: how many calls came within some second."""
        moments = sorted(at for at, _, _ in self.ses.calls())
        return max(bisect.bisect_left(moments, start + 1) - i for i, start in enumerate(moments))


@pytest.fixture
def place(deployed: PrefectServer, lite: Lite, tmp_path: Path) -> Iterator[Place]:
    empty(lite.database)
    with ses_stub("--no-bodies", "--latency-ms", str(SLOW_MS)) as ses:
        yield Place(deployed, lite, ses, tmp_path)


def sender_joins(place: Place, others: set[int]) -> int:
    """One more process has begun messages; its pid."""
    (joined,) = wait_for(lambda: set(place.shares()) - others, "one more machine sends")
    return int(joined)


def test_machines_share_a_mailout_and_any_may_die(place: Place) -> None:
    """First the only one that sends, then one of two: each takes its part, the queue goes on, nobody gets two
    letters, and SES sees one rate."""
    with place.worker("first") as first:
        place.run("send_mailout", ref=str(first.machine.letter))
        dead = {sender_joins(place, set())}
        wait_for(lambda: len(place.accepted()) > 5, "some letters")
        first.kill(*dead)
    with closing(first.machine.store()) as store:
        assert store.mailout(LETTER).status is Status.PROCESSING  # nobody could say that it had ended
        wait_for(lambda: queue_rows.due_mailouts(store, LOCK), "its lock runs out")
    with place.worker("second") as second, place.worker("third") as third:
        place.run("run_queue")
        heir = sender_joins(place, dead)
        run = place.run("run_queue")
        survivor = sender_joins(place, dead | {heir})
        place.ses.script(latency_ms=BRISK_MS)
        wait_for(lambda: min(place.shares()[one] for one in (heir, survivor)) > RATE // 2, "both send")
        (second if heir in second.children() else third).kill(heir)
        wait_for(lambda: first.machine.mailout().status is Status.COMPLETED, f"{survivor} finishes it")
        wait_for(lambda: place.state_of(run) == "Completed", "and its run ends")
    # rate + max(1, 1 %) starts in a second; one call in each machine's lane may arrive later than it started.
    assert place.fullest_second() <= RATE + 1 + 2
    # The journals are on machines that are gone: what they had begun and not reported is in doubt.
    nobody_twice_and_nobody_lost(first.machine, place.accepted(), unknown=2 * (RATE + 1))
    tell_what_ses_knows(place, first.machine)
    doubtful = {email for email, state in first.machine.states().items() if state == State.UNKNOWN}
    assert doubtful == set(first.machine.people) - set(place.accepted())
    assert first.machine.mailout().ledger.balances


def tell_what_ses_knows(place: Place, machine: Machine) -> None:
    """A Send event for every message that SES has accepted, as its configuration set would publish them."""
    events = [
        ses_event(
            "Send",
            mail["to"],
            attempt=Attempt(mail["tags"]["mailout_message"], int(mail["tags"]["mailout_epoch"])),
            ses_id=mail["id"],
        )
        for mail in place.ses.messages()
    ]
    received = [Received(ids.uuid_of("event", str(n)), "sns", event) for n, event in enumerate(events)]
    with closing(machine.store()) as store:
        store.receive_events(received)
        ingest(store, "any")
