"""Single mails: requests a second through the gateway on one core, and from request to transport."""

from __future__ import annotations

import http.client
import json
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from mailout import wiring
from mailout.intake.companies import Scope, new_token
from mailout.settings import load_settings
from mailout.single_mail_run import SingleMailRun
from tests.bench.feedback import CONNECTIONS, gateway

MAIL = {"to": "ana@example.org", "subject": "Your receipt", "html": "<p>Thank you for your order.</p>" * 5}


def run(requests: int = 1_600, rounds: int = 5, latencies: int = 100) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="mailout-bench-") as folder:
        home = Path(folder) / "home"
        env = {"MAILOUT_HOME": str(home), "FROM_EMAIL": "shop@example.org", "SEND_RATE_PER_SEC": "0"}
        engine = wiring.build(load_settings(env=env))
        text, token = new_token("shop", tuple(Scope), None)
        engine.store.add_token(token)
        with gateway(home) as port:
            _accepted_a_second(port, text, 160)  # to warm up
            accepted = [_accepted_a_second(port, text, requests) for _ in range(rounds)]
            waits = _waits(engine, port, text, latencies)
        engine.store.close()
    return {
        "accepted_a_second": accepted,
        "median_seconds": statistics.median(waits),
        "p99_seconds": sorted(waits)[int(len(waits) * 0.99) - 1],
    }


def _post(connection: http.client.HTTPConnection, token: str) -> str:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", "/v1/email/send", json.dumps(MAIL), headers)
    answer = connection.getresponse()
    told = json.loads(answer.read())
    if answer.status != 202:
        raise RuntimeError(told)
    return str(told["outboxId"])


def _accepted_a_second(port: int, token: str, requests: int) -> float:
    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for _ in range(requests // CONNECTIONS):
            _post(connection, token)
        connection.close()

    threads = [threading.Thread(target=client) for _ in range(CONNECTIONS)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return requests // CONNECTIONS * CONNECTIONS / (time.perf_counter() - started)


def _waits(engine: Any, port: int, token: str, count: int) -> list[float]:
    """Of mails that come one at a time to a sender that has nothing else to do."""
    sender = threading.Thread(target=SingleMailRun(engine.sending).run, args=(3600.0,), daemon=True)
    sender.start()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    waits = []
    while engine.store.single_mails_waiting(rehearsal=True).due_since is not None:
        time.sleep(0.2)  # what was handed in above leaves first
    for _ in range(count):
        asked = time.time()
        id = _post(connection, token)
        while (row := engine.store.message(id))["state"] != "SENT":
            time.sleep(0.01)
        waits.append(row["sent_at"] - asked)
    engine.sending.stop()
    sender.join(30)
    connection.close()
    return waits
