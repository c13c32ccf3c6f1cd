"""What comes back must survive, too: a killed flow or gateway loses no event and counts none twice."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from mailout.base.ids import uuid_of
from mailout.outbox.feedback import feedback_rows
from tests.chaos.senders import PATIENCE
from tests.e2e.conftest import Commands
from tests.ports import free_port
from tests.ses_events import ses_event
from tests.sns_messages import CERTIFICATE_URL, TOPIC, Signer, Topic

ROOT = Path(__file__).resolve().parents[2]


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
    kept = {row.id for row in feedback_rows.waiting_events(store, 100_000)}
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
