"""A mail that was answered, or repeated because nobody answered, is sent once, whatever dies."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from mailout import wiring
from mailout.intake.companies import Scope, new_token
from mailout.settings import load_settings
from mailout.single_mail_run import send_what_waits
from tests.chaos.senders import PATIENCE
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("GATEWAY_KILLS", "2"))
"""How often the gateway is killed; 30 for the long form."""
CLIENTS = 4


class Clients:
    """Programs that hand in mails under keys of their own, and keep what they were told."""

    def __init__(self, port: int, token: str) -> None:
        self._url = f"http://127.0.0.1:{port}/v1/email/send"
        self._token = token
        self._next = 0
        self._lock = threading.Lock()
        self.answered: dict[str, str] = {}
        self.unanswered: set[str] = set()

    def one(self, key: str) -> None:
        body = {"to": f"{key}@example.org", "subject": f"Receipt {key}", "html": f"<p>{key}</p>"}
        headers = {"Authorization": f"Bearer {self._token}", "Idempotency-Key": key}
        with self._lock:
            self.unanswered.add(key)
        answer = httpx.post(self._url, json=body, headers=headers, timeout=PATIENCE, trust_env=False)
        assert answer.status_code == 202, answer.text
        with self._lock:
            assert self.answered.setdefault(key, answer.json()["outboxId"]) == answer.json()["outboxId"]
            self.unanswered.discard(key)

    def until_it_dies(self) -> None:
        with suppress(httpx.TransportError):
            while True:
                with self._lock:
                    self._next += 1
                    key = f"k{self._next}"
                self.one(key)


@contextmanager
def gateway(home: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "MAILOUT_HOME": str(home)}
    command = [sys.executable, "-m", "cli", "gateway", "--port", str(port)]
    process = subprocess.Popen(command, env=env, cwd=home, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with suppress(httpx.TransportError):
                httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False)
                break
            assert process.poll() is None
            time.sleep(0.1)
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.timeout(900)
def test_the_gateway_is_killed_while_mails_are_handed_in(tmp_path: Path) -> None:
    chance = random.Random(18)
    home = tmp_path / "home"
    env = {"MAILOUT_HOME": str(home), "FROM_EMAIL": "shop@example.org", "SEND_RATE_PER_SEC": "0"}
    engine = wiring.build(load_settings(env=env))
    text, token = new_token("shop", tuple(Scope), None)
    engine.store.add_token(token)
    port = free_port()
    clients = Clients(port, text)
    for _ in range(KILLS):
        with gateway(home, port) as process:
            for key in list(clients.unanswered):
                clients.one(key)
            threads = [threading.Thread(target=clients.until_it_dies) for _ in range(CLIENTS)]
            for thread in threads:
                thread.start()
            time.sleep(chance.uniform(0.05, 0.6))
            process.send_signal(signal.SIGKILL)
            for thread in threads:
                thread.join(PATIENCE)
    with gateway(home, port):
        for key in list(clients.unanswered):
            clients.one(key)
    assert len(clients.answered) > KILLS
    send_what_waits(engine.sending)
    for key, id in clients.answered.items():
        assert engine.store.message(id)["state"] == "SENT", key
    mails = [path.name.partition("@")[0] for path in (home / "outbox" / "single").glob("*.eml")]
    assert sorted(mails) == sorted(clients.answered)  # each once, and no other
    engine.store.close()
