"""Single mails: requests a second through the gateway on one core, and from request to transport.

The second is measured where people have it: an idle `mailout up`, mails that come one at a time.
"""

from __future__ import annotations

import http.client
import json
import random
import statistics
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from mailout.adapters.sqlite import SqliteStore
from mailout.base.clock import SystemClock
from mailout.kinds.single_mails.companies import Scope, add_token, new_token
from mailout.outbox.delivery import outbox_rows
from tests.bench.feedback import CONNECTIONS, gateway
from tests.bench.idle import up
from tests.stubs.notion_workspace import workspace
from tests.stubs.running import notion_stub

LATENCIES = 500
PATIENCE = 300.0
HTML = "<h1>Your receipt</h1>" + "<p>Thank you for your order.</p>" * 5


def run(requests: int = 1_600, rounds: int = 5, mails: int = LATENCIES) -> dict[str, Any]:
    accepted = {"accepted_a_second": accepted_a_second(requests, rounds)}
    if not mails:
        return accepted
    waits = sorted(seconds_to_the_transport(mails))
    return {
        **accepted,
        "median_seconds": statistics.median(waits),
        "p99_seconds": waits[int(len(waits) * 0.99) - 1],
    }


def accepted_a_second(requests: int, rounds: int) -> list[float]:
    """Every mail is another one, and in the outbox when it is answered."""
    rates = []
    with tempfile.TemporaryDirectory(prefix="mailout-bench-") as folder:
        home = Path(folder)
        with gateway(home) as port, closing(_store(home)) as store:
            token = _token(store)
            _hand_in(port, token, 10 * CONNECTIONS)  # warm: the routes are built, the token is known
            for _ in range(rounds):
                started = time.perf_counter()
                _hand_in(port, token, requests)
                rates.append(requests / (time.perf_counter() - started))
            ((kept,),) = store.db.read("SELECT count(*) FROM email_outbox")
    if kept != 10 * CONNECTIONS + requests * rounds:
        raise AssertionError(f"{kept} mails are in the outbox, and not all that were answered")
    return rates


def _hand_in(port: int, token: str, requests: int) -> None:
    def client(first: int) -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            for number in range(first, requests, CONNECTIONS):
                _post(connection, token, number)

    threads = [threading.Thread(target=client, args=(n,)) for n in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def seconds_to_the_transport(mails: int = LATENCIES) -> list[float]:
    """Of each mail, from its request to the moment at which the transport had taken it."""
    with tempfile.TemporaryDirectory(prefix="mailout-bench-") as made, notion_stub() as notion:
        notion.load(workspace())
        folder = Path(made)
        with up(folder, notion) as (_, port), closing(_store(folder / "home")) as store:
            token = _token(store)
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
                _until_sent(store, [_post(connection, token, 0)])  # a sender is there from now on
                connection.close()  # idle for too long: the next post opens another
                chance, asked = random.Random(7), {}
                for number in range(mails):
                    time.sleep(chance.uniform(0.21, 0.4))  # the default pace is one in 0.2 s
                    before = time.time()
                    asked[_post(connection, token, number)] = before
            _until_sent(store, list(asked))
            return [outbox_rows.message(store, id)["sent_at"] - before for id, before in asked.items()]


def _store(home: Path) -> SqliteStore:
    return SqliteStore(home / "mailout.db", SystemClock())


def _token(store: Any) -> str:
    text, token = new_token("shop", tuple(Scope), None)
    add_token(store, token)
    return text


def _until_sent(store: SqliteStore, ids: list[str]) -> None:
    until = time.monotonic() + PATIENCE
    while any(outbox_rows.message(store, id)["state"] != "SENT" for id in ids):
        if time.monotonic() > until:
            raise TimeoutError("the mails are not sent")
        time.sleep(0.2)


def _post(connection: http.client.HTTPConnection, token: str, number: int) -> str:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    mail = {"to": f"ana-{number}@example.org", "subject": "Your receipt", "html": f"{HTML}<p>{number}</p>"}
    connection.request("POST", "/v1/email/send", json.dumps(mail), headers)
    answer = connection.getresponse()
    told = json.loads(answer.read())
    if answer.status != 202:
        raise RuntimeError(told)
    return str(told["outboxId"])
