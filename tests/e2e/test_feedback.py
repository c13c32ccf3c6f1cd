"""Feedback from end to end: the real gateway process, a signed event, the commands, the books."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from mailout.base.signed_links import Tokens
from mailout.letters.audience import subscriber_rows
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.protocol import Attempt
from mailout.outbox.feedback.port import Received
from mailout.outbox.queue import queue_rows
from tests.chaos.senders import PATIENCE
from tests.e2e.conftest import Commands
from tests.ports import free_port
from tests.ses_events import ses_event
from tests.sns_messages import CERTIFICATE_URL, TOPIC, Signer, Topic

SECRET = "a secret of some length"


@contextmanager
def gateway(mailout: Commands, **settings: str) -> Iterator[httpx.Client]:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", "gateway", "--port", str(port)],
        cwd=mailout.folder,
        env=mailout.environment | settings,
        stderr=subprocess.PIPE,
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=PATIENCE) as client:
            _wait_for(client, process)
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=PATIENCE)
        assert b"Traceback" not in said, said.decode()


def _wait_for(client: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    while True:
        assert process.poll() is None
        try:
            assert client.get("/health").status_code == 200
        except httpx.ConnectError:
            time.sleep(0.05)
        else:
            return


def test_a_bounce_finds_its_way_into_the_books(mailout: Commands) -> None:
    """Send, hear of a bounce and an unsubscribe, apply, and look: nothing in between is a double."""
    mailout.people("ana@example.org", "bo@example.org", "cy@example.org")
    assert mailout("send", mailout.letter(), "--direct").code == 0
    store = mailout.store()
    (sent,) = queue_rows.mailouts(store)
    ana = next(row for row in outbox_rows.messages(store, sent.id) if row["email"] == "ana@example.org")
    signer = Signer.make(valid_from=time.time() - 3600)
    certs = mailout.home / "certs"
    certs.mkdir()
    (certs / CERTIFICATE_URL.rpartition("/")[2]).write_bytes(signer.pem)
    event = ses_event("Bounce", "ana@example.org", attempt=Attempt(ana["id"], ana["epoch"]), at=time.time())
    with gateway(mailout, SNS_TOPIC_ARNS=TOPIC) as client:
        assert client.post("/ses-events", content=Topic(signer=signer).notification(event)).status_code == 200
        forged = Topic(signer=Signer.make()).notification(event)
        assert client.post("/ses-events", content=forged).status_code == 403
        link = f"/unsubscribe?token={Tokens([SECRET]).make('bo@example.org')}"
        assert "bo@example.org" in client.get(link).text  # which asks first
        assert client.post(link).status_code == 200
        assert (
            subscriber_rows.subscriber(store, "ana@example.org")["status"] == "active"
        )  # waits for the flow
    done = mailout("events", "--json")
    assert (done.code, done.data["events"], done.data["statuses"]) == (0, 1, 1)
    assert subscriber_rows.subscriber_counts(store) == {"active": 1, "unsubscribed": 1, "bounced": 1}
    assert store.mailout(sent.id).metrics == {"bounced": 1, "unsubscribed": 1}
    assert mailout("events").out == "Nothing waits.\n"
    store.close()


def test_a_person_can_be_forgotten(mailout: Commands) -> None:
    mailout.people("ana@example.org", "bo@example.org")
    assert mailout("send", mailout.letter(), "--direct").code == 0
    done = mailout("subscribers", "forget", "Ana@Example.org", "--json", "--yes")
    assert (done.code, done.data["subscribers"], done.data["messages"]) == (0, 1, 1)
    assert [Path(file).name.split("--")[0] for file in done.data["mail_files"]] == ["ana@example.org"]
    reports = "".join(path.read_text() for path in (mailout.home / "reports").rglob("*.csv"))
    assert "ana@example.org" not in reports
    assert "bo@example.org" in reports
    (sent,) = mailout("queue", "list", "--json").data
    assert sent["ledger"]["sent"] == 2
    again = mailout("subscribers", "forget", "ana@example.org", "--yes")
    assert (again.code, again.one_line) == (2, "mailout: Nothing is known of ana@example.org.")
    (report,) = (mailout.home / "reports").glob("*.csv")
    report.write_text("ana@example.org,sent\nbo@example.org,sent\n")  # as if the first one was cut off
    done = mailout("subscribers", "forget", "ana@example.org", "--json", "--yes")
    assert done.data["reports"] == [report.stem]
    assert "ana@example.org" not in report.read_text()


def test_what_cannot_be_read_is_said(mailout: Commands) -> None:
    store = mailout.store()
    store.receive_events([Received("1", "sns", "<html>"), Received("2", "sns", ses_event("Delivery"))])
    store.close()
    said = mailout("events").out
    assert "1 event applied" in said
    assert "1 message could not be used; 1 is a dead letter." in said


def test_who_complained_gets_nothing_more_although_nobody_has_applied_it(mailout: Commands) -> None:
    """Where only a gateway runs, and letters are sent by command."""
    mailout.people("ana@example.org", "bo@example.org")
    store = mailout.store()
    store.receive_events([Received("1", "sns", ses_event("Complaint", "ana@example.org"))])
    with store.db.write() as tx:
        tx.execute("UPDATE events_inbox SET received_at = received_at - 172800")
    store.close()
    assert "1 SES event waits to be applied, the oldest for 2 d: mailout events" in mailout("status").out
    assert mailout("status", "--json").data["events_waiting"] == 1
    assert mailout("send", mailout.letter(), "--direct").code == 0
    assert [mail.name.split("--")[0] for mail in mailout.mails()] == ["bo@example.org"]
    assert "SES event" not in mailout("status").out


def test_a_queue_out_of_reach_keeps_nothing_from_being_applied(mailout: Commands) -> None:
    mailout.people("ana@example.org")
    store = mailout.store()
    store.receive_events([Received("1", "sns", ses_event("Complaint", "ana@example.org"))])
    nowhere = f"http://127.0.0.1:{free_port()}"
    asked = {
        "SQS_QUEUE_URL": f"{nowhere}/0/events",
        "AWS_ENDPOINT_URL_SQS": nowhere,
        "AWS_REGION": "eu-west-1",
    }
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_MAX_ATTEMPTS": "1"}
    ended = mailout("events", **asked, **keys)
    assert (ended.code, "SQS" in ended.one_line) == (1, True)
    assert subscriber_rows.subscriber(store, "ana@example.org")["status"] == "unsubscribed"
    store.close()


@pytest.mark.parametrize(
    "arguments", [("subscribers", "forget", "nobody"), ("events", "suppression", "push", "x")]
)
def test_a_wrong_address_is_named(mailout: Commands, arguments: tuple[str, ...]) -> None:
    ended = mailout(*arguments, AWS_REGION="eu-west-1")
    assert (ended.code, "is not an address" in ended.one_line) == (2, True)
