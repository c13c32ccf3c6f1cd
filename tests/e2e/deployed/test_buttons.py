"""Prefect's Cancel button, as its pages press it, on runs that a real worker has started."""

from __future__ import annotations

import uuid
from contextlib import closing

from mailout.outbox.queue.mailout import DeferReason, Mailout
from tests.e2e.conftest import Commands
from tests.e2e.deployed.test_automation import PEOPLE, worker
from tests.prefect_server import PrefectServer, wait_for

NAME = "To be cancelled (rehearsal)"


class Queue:
    """Runs of the queue, by hand."""

    def __init__(self, server: PrefectServer) -> None:
        self._server = server
        self._deployment = next(one["id"] for one in server.find("deployments") if one["name"] == "run_queue")

    def start(self) -> str:
        asked = {"state": {"type": "SCHEDULED"}, "idempotency_key": uuid.uuid4().hex}
        made = self._server.ask(f"deployments/{self._deployment}/create_flow_run", asked)
        return str(made["id"])

    def below(self, run: str) -> str | None:
        """The letter's own run, once it has its name."""
        parent = {"flow_runs": {"parent_flow_run_id": {"any_": [run]}}}
        found = [one["id"] for one in self._server.ask("flow_runs/filter", parent) if one["name"] == NAME]
        return found[0] if found else None

    def cancel(self, run: str) -> None:
        self._server.ask(f"flow_runs/{run}/set_state", {"state": {"type": "CANCELLING"}})

    def state(self, run: str) -> str:
        (found,) = self._server.ask("flow_runs/filter", {"flow_runs": {"id": {"any_": [run]}}})
        return str(found["state_name"])


def test_cancel_pauses_the_letter_whether_its_own_run_is_cancelled_or_the_queue_s(
    mailout: Commands, deployed: PrefectServer
) -> None:
    mailout.people(*PEOPLE)
    # Slow enough to be stopped in the middle, whatever else this machine does.
    mailout.settings |= {"SEND_RATE_PER_SEC": "0.05", "LOCK_SECONDS": "30"}
    letter = mailout.letter(subject=NAME.removesuffix(" (rehearsal)"))
    assert mailout("send", letter, "--direct", SEND_DELAY="1").code == 75
    queue = Queue(deployed)
    with worker(mailout, deployed, "buttons"):
        run = queue.start()
        own = wait_for(lambda: queue.below(run), "the letter has a run")
        wait_for(mailout.mails, "the first letter")
        queue.cancel(own)
        wait_for(lambda: queue.state(own) == "Cancelled", "its own run is cancelled")
        wait_for(lambda: queue.state(run) == "Completed", "the queue's is not")
        paused(mailout)
        sent = len(mailout.mails())

        with closing(mailout.store()) as store:
            store.resume(mailout.queue()[0].id)
        run = queue.start()
        own = wait_for(lambda: queue.below(run), "the letter has a run again")
        wait_for(lambda: len(mailout.mails()) > sent, "it goes on")
        queue.cancel(run)
        both = (run, own)
        wait_for(lambda: {queue.state(one) for one in both} == {"Cancelled"}, "both are cancelled")
    assert paused(mailout).ledger.sent == len(mailout.mails()) < len(PEOPLE)


def paused(mailout: Commands) -> Mailout:
    (found,) = mailout.queue()
    assert (found.defer_reason, found.defer_note) == (DeferReason.PAUSED, "It was cancelled in Prefect.")
    assert (found.ledger.in_flight, found.ledger.unknown) == (0, 0)
    return found
