"""Faults of what is handed in over HTTP: requests and webhooks, several times each, and the gateway dies."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from mailout.kinds.single_mails.companies import Scope, add_token, new_token
from tests.chaos.jobs import COMPANY, send_what_was_asked_for, serve
from tests.chaos.neighbours import from_notion
from tests.chaos.places import PATIENCE, Place, Stage, kill, wait_for
from tests.chaos.scenes import Fault
from tests.contract.articles import order
from tests.ports import free_port

API_TOKEN = "a token for chaos, long enough"
WEBHOOK_TOKEN = "secret_of_notion_for_chaos"
Request = tuple[str, bytes, dict[str, str]]
"""Path, body and headers."""
PASSWORD = "a password for chaos"


@dataclass
class Clients:
    """Programs that ask for something, each request several times, and again until it is answered."""

    url: str
    asked: deque[Request]
    more_may_come: bool = False
    pause: float = 0.0  # seconds after each answer, as people take
    taken: list[Request] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    @property
    def answered(self) -> int:
        return len(self.taken)

    def begin(self) -> None:
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(4)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """All is answered; what never is breaks the scene."""
        self.more_may_come = False
        for thread in self._threads:
            thread.join(PATIENCE)
        if any(thread.is_alive() for thread in self._threads):
            raise AssertionError(f"never answered: {[path for path, _, _ in self.asked]}")

    def _ask(self) -> None:
        with httpx.Client(base_url=self.url, trust_env=False, timeout=1.5) as http:
            while self.asked or self.more_may_come:
                try:
                    request = self.asked.popleft()
                except IndexError:
                    time.sleep(0.005)
                    continue
                path, body, headers = request
                try:
                    answer = http.post(path, content=body, headers=headers)
                    good = answer.status_code in (200, 202)
                except httpx.TransportError:
                    good = False
                if good:
                    self.taken.append(request)
                    time.sleep(self.pause)
                else:
                    self.asked.append(request)
                    time.sleep(0.02)


def requests(place: Place, copies: int) -> deque[Request]:
    job = place.job
    if job.ref:
        made = [_webhook(job.ref, number) for number in range(30)]
    elif job.mode == "articles":
        made = [json_request("/articles/send", vars_of_order() | {"admin_password": PASSWORD})]
    elif job.mode == "single mails":
        with closing(place.store()) as store:
            text, token = new_token(COMPANY, tuple(Scope), None)
            add_token(store, token)
        receipt = {"subject": "Your receipt", "html": "<p>Thank you.</p>"}
        bearer = {"Authorization": f"Bearer {text}"}
        made = [
            json_request("/v1/email/send", {"to": email, **receipt}, **bearer, **{"Idempotency-Key": email})
            for email in job.emails
        ]
    else:
        asked = {"ref": str(job.home / "letter.md")}
        made = [json_request("/send-mailout", asked, Authorization=f"Bearer {API_TOKEN}")]
    everything = made * (copies if len(made) > 1 else 60)
    place.chance.shuffle(everything)
    return deque(everything)


def json_request(path: str, body: dict[str, Any], **headers: str) -> Request:
    return path, json.dumps(body).encode(), {"Content-Type": "application/json", **headers}


def _webhook(page: str, number: int) -> Request:
    """As Notion signs it."""
    changed = {"id": f"change-{number}", "type": "page.properties_updated", "data": {}}
    path, body, headers = json_request("/webhooks/notion", changed | {"entity": {"id": page, "type": "page"}})
    signature = hmac.new(WEBHOOK_TOKEN.encode(), body, hashlib.sha256).hexdigest()
    return path, body, {**headers, "X-Notion-Signature": f"sha256={signature}"}


def vars_of_order() -> dict[str, Any]:
    one = order()
    return {
        "campaign_tag": one.campaign_tag,
        "article_key": one.article_key,
        "send_batch_id": one.send_batch_id,
        "audience_filter": dict(one.audience_filter),
    }


@contextmanager
def behind_the_gateway(stage: Stage, mode: str, store: str, people: int) -> Iterator[Place]:
    place = stage.place(mode, store, people, API_TOKEN=API_TOKEN, ADMIN_PASSWORD=PASSWORD)
    place.task = send_what_was_asked_for
    yield place


@contextmanager
def told_by_notion(stage: Stage, mode: str, store: str, people: int) -> Iterator[Place]:
    with from_notion(stage, mode, store, people) as place:
        told = {"NOTION_WEBHOOK_TOKEN": WEBHOOK_TOKEN}
        place.job = replace(place.job, env={**place.job.env, **told})
        place.task = send_what_was_asked_for
        yield place


def webhooks(place: Place, dose: int) -> int:
    """Before the mailout, while it is sent, and again when it is over, to a gateway that is killed."""
    hits = gateway("kill", senders_beside=True)(place, dose)
    place.finish()
    gateway("kill")(place, 1)
    return hits


def gateway(strike: str, *, senders_beside: bool = False) -> Fault:
    """Everything is asked for at least twice; the gateway is killed, or stands still, in between."""

    def scene(place: Place, dose: int) -> int:
        port, senders = free_port(), []
        clients = Clients(f"http://127.0.0.1:{port}", requests(place, copies=2))
        total = len(clients.asked)
        clients.begin()
        for _ in range(dose):
            process = place.start(serve, port)
            if senders_beside:
                senders.append(place.start())
            target = min(total - 1, clients.answered + place.chance.randint(1, max(1, total // dose)))
            wait_for(lambda target=target: clients.answered >= target, process)  # type: ignore[misc]
            if strike == "stop":
                place.halt(process)
                time.sleep(2.0)  # longer than its clients wait: they ask again
                os.kill(process.pid or 0, signal.SIGCONT)
                time.sleep(0.2)
            kill(process)
        process = place.start(serve, port)
        clients.end()
        kill(process)
        for sender in senders:
            sender.join(PATIENCE)
        return dose

    return scene
