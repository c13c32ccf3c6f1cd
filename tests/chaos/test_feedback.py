"""What comes back must survive, too: a killed flow or gateway loses no event and counts none twice."""

from __future__ import annotations

import http.client
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from mailout.adapters.sqlite import SqliteStore
from mailout.clock import SystemClock
from mailout.feedback.model import Received
from mailout.ids import uuid_of
from tests.chaos.senders import PATIENCE
from tests.contract.scenes import Sender, mailout, result
from tests.e2e.conftest import Commands
from tests.ports import free_port
from tests.ses_events import ses_event
from tests.sns_messages import CERTIFICATE_URL, TOPIC, Signer, Topic

INGEST = """
import sys
from pathlib import Path
from mailout.adapters.sqlite import SqliteStore
from mailout.clock import SystemClock
from mailout.feedback.ingest import ingest
print("began", flush=True)
ingest(SqliteStore(Path(sys.argv[1]), SystemClock()), "any", batch=7)
"""
ROOT = Path(__file__).resolve().parents[2]


def test_ingesting_killed_again_and_again_comes_to_the_same(tmp_path: Path) -> None:
    path = tmp_path / "mailout.db"
    store = SqliteStore(path, SystemClock())
    emails = [f"reader{number:03d}@example.org" for number in range(400)]
    id = mailout(store, *emails)
    sender = Sender(store, id, lease=3600)
    claimed = sender.begin(400)
    sender.step(results=[result(one) for one in claimed[:300]])  # of a hundred only events will tell
    events = [ses_event("Delivery", one.email, attempt=one.attempt) for one in claimed]
    events += [ses_event("Open", one.email, attempt=one.attempt) for one in claimed for _ in range(2)]
    events += [ses_event("Bounce", one.email, attempt=one.attempt) for one in claimed[:40]]
    events += ["not JSON"] * 10
    received = [Received(uuid_of("event", str(n)), "sns", payload) for n, payload in enumerate(events)]
    store.receive_events(received)
    chance = random.Random(20261115)
    kills = 0
    while store.inbox_counts().waiting:
        command = [sys.executable, "-c", INGEST, str(path)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.uniform(0, 0.1) * 1.25**kills)  # longer and longer: on a slow machine, too, it ends
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        kills += 1
        store.receive_events(chance.sample(received, 50))  # SNS says things twice, most of all now
    assert kills > 3
    found = store.mailout(id)
    assert found.metrics == {"delivered": 400, "opened": 400, "bounced": 40}
    assert (found.ledger.sent, found.ledger.in_flight, found.ledger.balances) == (400, 0, True)
    assert store.subscriber_counts()["bounced"] == 40
    assert len(store.dead_letters()) == 10
    store.close()


def test_what_the_gateway_has_answered_it_has_kept(tmp_path: Path) -> None:
    """Killed under load: SNS will not repeat what was answered with 200."""
    commands = Commands(tmp_path, {"MAILOUT_HOME": str(tmp_path / "home"), "SNS_TOPIC_ARNS": TOPIC})
    signer = Signer.make(valid_from=time.time() - 3600)
    (commands.home / "certs").mkdir(parents=True)
    (commands.home / "certs" / CERTIFICATE_URL.rpartition("/")[2]).write_bytes(signer.pem)
    topic = Topic(signer=signer)
    answered: list[str] = []
    for round in range(3):
        port, process = _gateway(commands)
        threads = [
            threading.Thread(target=_post_until_it_dies, args=(port, topic, f"{round}{n}", answered))
            for n in range(4)
        ]
        for thread in threads:
            thread.start()
        so_far = len(answered)
        while len(answered) < so_far + 60:
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
        process.wait()
        for thread in threads:
            thread.join()
    store = commands.store()
    kept = {row.id for row in store.waiting_events(100_000)}
    assert len(answered) >= 180
    assert set(answered) <= kept
    store.close()


def _gateway(commands: Commands) -> tuple[int, subprocess.Popen[bytes]]:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", "gateway", "--port", str(port)],
        cwd=commands.folder,
        env=commands.environment,
        stderr=subprocess.DEVNULL,
    )
    while True:
        assert process.poll() is None
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return port, process


def _post_until_it_dies(port: int, topic: Topic, name: str, answered: list[str]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    for number in range(100_000):
        id = uuid_of(name, str(number))
        body = topic.notification(ses_event("Open"), MessageId=id)
        try:
            connection.request("POST", "/ses-events", body)
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            break
        if answer.status == 200:
            answered.append(id)
    connection.close()
