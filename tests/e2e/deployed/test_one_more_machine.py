"""`mailout up --only-workers`: a machine more, for a server that runs elsewhere."""

from __future__ import annotations

import signal
import sys

from tests.e2e.conftest import Commands
from tests.e2e.processes import needs_proc, one_that, processes_of
from tests.prefect_server import PATIENCE, PrefectServer, running, wait_for

PEOPLE = [f"{name}@example.org" for name in ("ana", "bo", "cy", "dee", "eli", "fay")]


@needs_proc
def test_one_more_machine_works_for_the_server_and_goes_politely(
    mailout: Commands, deployed: PrefectServer
) -> None:
    """A bare worker that is ended cuts off its sender, and its last messages are in doubt."""
    mailout.people(*PEOPLE)
    mailout.settings |= deployed.env | {"SEND_RATE_PER_SEC": "0.05", "LOCK_SECONDS": "30"}
    command = [sys.executable, "-m", "cli", "up", "--only-workers"]
    log = mailout.folder / "up.log"
    with running(command, cwd=mailout.folder, env=mailout.environment, log=log) as process:
        letter = mailout.letter("machine.md")
        (sends,) = [one for one in deployed.find("deployments") if one["name"] == "send_mailout"]
        asked = {"parameters": {"ref": str(letter)}, "idempotency_key": str(mailout.folder)}
        deployed.ask(f"deployments/{sends['id']}/create_flow_run", asked)
        wait_for(mailout.mails, "the first letter")
        assert one_that(mailout.home, "cli gateway") is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, log.read_text()
    assert wait_for(lambda: not processes_of(mailout.home), f"all end: {processes_of(mailout.home)}")
    (stopped,) = mailout.queue()
    assert (stopped.ledger.in_flight, stopped.ledger.unknown) == (0, 0)
    assert stopped.ledger.sent == len(mailout.mails()) < len(PEOPLE)
