"""How much can come back: verified posts a second through the real gateway, and events applied.

The gateway runs as its own process, held to one core.
"""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mailout.adapters.sqlite import SqliteStore
from mailout.base.clock import SystemClock
from mailout.base.ids import mailout_id, uuid_of
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.model import Content
from mailout.letters.content.port import Kind
from mailout.outbox.delivery.protocol import Attempt, Pace, Result, Step
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.feedback.ingest import ingest
from mailout.outbox.feedback.port import Received
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import NewMailout
from tests.ports import free_port
from tests.ses_events import ses_event
from tests.sns_messages import CERTIFICATE_URL, TOPIC, Signer, Topic

ROOT = Path(__file__).resolve().parents[2]
CONNECTIONS = 16
CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


@contextmanager
def gateway(home: Path) -> Iterator[int]:
    """`mailout gateway`, on one core if the system can hold it there."""
    port = free_port()
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "MAILOUT_HOME": str(home)}
    env |= {"SNS_TOPIC_ARNS": TOPIC, "UNSUBSCRIBE_SECRET": "bench"}
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", "gateway", "--port", str(port)],
        env=env,
        cwd=home,
        stderr=subprocess.DEVNULL,
        preexec_fn=(lambda: os.sched_setaffinity(0, CORES[:1])) if CORES else None,
    )
    try:
        _wait_for(port)
        yield port
    finally:
        process.terminate()
        process.wait(20)


def _wait_for(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError("the gateway does not listen")


def burst(posts: int = 4_000, at_once: int = 200) -> dict[str, Any]:
    """So many clients at once. SNS waits 15 seconds for an answer; a 503 with Retry-After is one, too."""
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        bodies = _signed(home, posts)
        answers: list[tuple[float, int, bool]] = []

        def client(port: int, mine: list[bytes]) -> None:
            for body in mine:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                started = time.perf_counter()
                connection.request("POST", "/ses-events", body, {"Content-Type": "text/plain; charset=UTF-8"})
                answer = connection.getresponse()
                answer.read()
                connection.close()
                took = time.perf_counter() - started
                answers.append((took, answer.status, answer.getheader("Retry-After") is not None))

        with gateway(home) as port:
            started = time.perf_counter()
            threads = [
                threading.Thread(target=client, args=(port, bodies[n::at_once])) for n in range(at_once)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            took = time.perf_counter() - started
    good = sum(1 for _, status, _ in answers if status == 200)
    later = sum(1 for _, status, retry in answers if status == 503 and retry)
    return {
        "a_second": posts / took,
        "answered_later": later,
        "unanswered": posts - good - later,
        "slowest_seconds": max(took for took, _, _ in answers),
    }


def _signed(home: Path, posts: int) -> list[bytes]:
    """Posts that the gateway of this home can verify."""
    signer = Signer.make(valid_from=time.time() - 3600)
    (home / "certs").mkdir()
    (home / "certs" / CERTIFICATE_URL.rpartition("/")[2]).write_bytes(signer.pem)
    message = ses_event("Delivery", attempt=Attempt(uuid_of("bench"), 1))
    return [Topic(signer=signer).notification(message) for _ in range(posts)]


def posts_per_second(posts: int) -> tuple[float, int]:
    """Signed beforehand, sent over a few connections as SNS does; and how many the store then holds."""
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        bodies = _signed(home, posts)
        with gateway(home) as port:
            _post(port, bodies[:CONNECTIONS])  # warm: the certificate is read, the routes are built
            started = time.perf_counter()
            threads = [
                threading.Thread(target=_post, args=(port, bodies[n::CONNECTIONS]))
                for n in range(CONNECTIONS)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            took = time.perf_counter() - started
        store = SqliteStore(home / "mailout.db", SystemClock())
        kept = feedback_rows.inbox(store)["waiting"]
        store.close()
    return posts / took, kept


def _post(port: int, bodies: list[bytes]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for body in bodies:
        connection.request("POST", "/ses-events", body, {"Content-Type": "text/plain; charset=UTF-8"})
        answer = connection.getresponse()
        said = answer.read()
        if answer.status != 200:
            raise AssertionError((answer.status, said))
    connection.close()


def seconds_to_ingest(events: int) -> float:
    """A mailout of so many messages, each delivered, one in twenty bounced instead."""
    with tempfile.TemporaryDirectory() as made:
        store = SqliteStore(Path(made) / "mailout.db", SystemClock())
        attempts = _sent(store, events)
        for start in range(0, events, 5000):
            store.receive_events(
                [
                    Received(uuid_of("bench", email), "sns", _event(number, email, attempt))
                    for number, (email, attempt) in enumerate(attempts[start : start + 5000], start)
                ]
            )
        started = time.perf_counter()
        applied = ingest(store, "any")
        took = time.perf_counter() - started
        assert applied.events == events
        assert sum(queue_rows.mailouts(store)[0].metrics.values()) == events
        store.close()
    return took


def _event(number: int, email: str, attempt: Attempt) -> str:
    return ses_event("Bounce" if number % 20 == 0 else "Delivery", email, attempt=attempt)


def _sent(store: SqliteStore, n: int) -> list[tuple[str, Attempt]]:
    emails = [f"reader-{number:07d}@example.org" for number in range(n)]
    for start in range(0, n, 10_000):
        store.import_subscribers([SubscriberRow(email, email) for email in emails[start : start + 10_000]])
    content = Content("News", "<p>Hello</p>", "Hello")
    id = mailout_id("bench")
    store.enqueue(NewMailout(id=id, kind=Kind.MARKDOWN, ref="bench"))
    store.set_content(id, keep_content(store, content), content.subject)
    while store.freeze_subscribers(id) is not None:
        continue
    store.start(id, "bench")
    session = store.open_session(id, worker="bench", transport="folder", lease=600)
    attempts: list[tuple[str, Attempt]] = []
    pace, step, results, cursor = Pace("bench", 0.0), 0, list[Any](), 0
    while True:
        step += 1
        reply = store.step(Step(session, step, 600, pace, results=results, want=2000, cursor=cursor))
        if not reply.rows:
            return attempts
        attempts += [(row.email, row.attempt) for row in reply.rows]
        results = [Result(row.attempt, State.SENT, f"ses-{row.seq}") for row in reply.rows]
        cursor = reply.rows[-1].seq


def run(posts: int = 2_000, events: int = 20_000, rounds: int = 5) -> dict[str, Any]:
    found: dict[str, list[float]] = {"posts_a_second": [], "events_a_second": []}
    for _ in range(rounds):
        rate, kept = posts_per_second(posts)
        if kept < posts:
            raise AssertionError(f"{posts - kept} posts are lost")
        found["posts_a_second"].append(rate)
        found["events_a_second"].append(events / seconds_to_ingest(events))
    many = burst()
    if many["unanswered"]:
        raise AssertionError(f"{many['unanswered']} of many posts at once got no answer")
    return found | {"burst_slowest_seconds": many["slowest_seconds"]}
