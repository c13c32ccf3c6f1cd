"""Faults of those around the sender: Postgres, Notion, and what comes in and back over HTTP."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import httpx

from mailout.delivery.protocol import Attempt
from mailout.feedback.port import Received
from mailout.ids import uuid_of
from mailout.intake.companies import Scope, new_token
from tests.chaos.jobs import COMPANY, apply_events, send_what_was_asked_for, serve, start
from tests.chaos.places import PATIENCE, Place, Stage, clear, kill, wait_for
from tests.chaos.scenes import Scene
from tests.contract.articles import order
from tests.contract.postgres import STARTING, new_server
from tests.ports import free_port
from tests.ses_events import ses_event
from tests.stubs.notion import TOKEN as NOTION_TOKEN
from tests.stubs.notion_pages import p
from tests.stubs.notion_workspace import LETTER, MAILOUTS, mailout_page, workspace
from tests.stubs.running import NotionStub, notion_stub

API_TOKEN = "a token for chaos, long enough"
PASSWORD = "a password for chaos"

# ── Postgres ──


@cache
def _own_server(name: str) -> Any:
    return new_server()


@contextmanager
def on_own_postgres(stage: Stage, mode: str, store: str, people: int) -> Iterator[Place]:
    """A server that nobody else needs; it keeps every commit."""
    own = Stage(stage.folder, f"{stage.name}_pg", _own_server(stage.name).get_uri())
    try:
        place = own.place(mode, store, people, LOCK_SECONDS="20")
        place.server_name = stage.name
        yield place
        clear(place)
    finally:
        own.close()


def postgres_away(seconds: float) -> Scene:
    """It is gone at once, as in a crash, and comes back after so long."""

    def scene(place: Place, dose: int) -> int:
        server = _own_server(place.server_name)
        process = place.start()
        for hits in range(dose):
            if not place.reach(place.chance.randint(5, 20), process):
                return hits
            os.kill(server.get_pid(), signal.SIGQUIT)
            wait_for(lambda: not server.get_postmaster_info().is_running())
            time.sleep(seconds)
            with STARTING:
                server.ensure_postgres_running()
        process.join(PATIENCE)
        kill(process)
        return dose

    return scene


# ── Notion ──


@contextmanager
def from_notion(stage: Stage, mode: str, store: str, people: int) -> Iterator[Place]:
    """The letter is a page, and the page is told what became of it."""
    with notion_stub() as notion:
        notion.load(workspace(pages={LETTER: mailout_page("Hello", "Ready")}, blocks={LETTER: [p("Words")]}))
        place = stage.place(
            mode,
            store,
            people,
            NOTION_TOKEN=NOTION_TOKEN,
            NOTION_BASE_URL=notion.url,
            NOTION_DB_MAILOUTS=MAILOUTS,
        )
        place.job = replace(place.job, ref=LETTER)
        place.notion = notion
        yield place


def notion_fails(fault: dict[str, Any], *, at_load: bool) -> Scene:
    """While the page is read, or while it is to be told; both for longer than anybody waits."""

    def scene(place: Place, dose: int) -> int:
        notion: NotionStub = place.notion
        broken = [fault | {"times": 1000}]
        if at_load:
            notion.script(*broken)
            _briefly(place)
            notion.script(fault | {"times": 2})
            return 1
        process = place.start()
        if place.reach(5, process):
            notion.script(*broken)
        process.join(PATIENCE)
        notion.script()
        return 1

    return scene


def _briefly(place: Place) -> None:
    """It would try for half a minute."""
    process = place.start()
    process.join(3)
    kill(process)


# ── what is handed in over HTTP ──


@dataclass
class Clients:
    """Programs that ask for something, each request several times, and again until it is answered."""

    url: str
    asked: deque[tuple[str, dict[str, Any], dict[str, str]]]
    answered: int = 0
    done: bool = False
    _threads: list[threading.Thread] = field(default_factory=list)

    def begin(self) -> None:
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(4)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE)

    def _ask(self) -> None:
        with httpx.Client(base_url=self.url, trust_env=False, timeout=1.5) as http:
            while self.asked:
                try:
                    request = self.asked.popleft()
                except IndexError:
                    return
                path, body, headers = request
                try:
                    answer = http.post(path, json=body, headers=headers)
                    good = answer.status_code in (200, 202)
                except httpx.TransportError:
                    good = False
                if good:
                    self.answered += 1
                else:
                    self.asked.append(request)
                    time.sleep(0.02)


def requests(place: Place, copies: int) -> deque[tuple[str, dict[str, Any], dict[str, str]]]:
    job = place.job
    bearer = {"Authorization": f"Bearer {API_TOKEN}"}
    if job.mode == "articles":
        wanted = vars_of_order() | {"admin_password": PASSWORD}
        made = [("/articles/send", wanted, {})]
    elif job.mode == "single mails":
        with closing(place.store()) as store:
            text, token = new_token(COMPANY, tuple(Scope), None)
            store.add_token(token)
        made = [
            (
                "/v1/email/send",
                {"to": email, "subject": "Your receipt", "html": "<p>Thank you.</p>"},
                {"Authorization": f"Bearer {text}", "Idempotency-Key": email},
            )
            for email in job.emails
        ]
    else:
        made = [("/send-mailout", {"ref": str(job.home / "letter.md")}, bearer)]
    everything = made * (copies if len(made) > 1 else 60)
    place.chance.shuffle(everything)
    return deque(everything)


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


def gateway(strike: str) -> Scene:
    """Everything is asked for at least twice; the gateway is killed, or stands still, in between."""

    def scene(place: Place, dose: int) -> int:
        port = free_port()
        clients = Clients(f"http://127.0.0.1:{port}", requests(place, copies=2))
        total = len(clients.asked)
        clients.begin()
        for _ in range(dose):
            process = start(serve, place.job, port)
            target = min(total - 1, clients.answered + place.chance.randint(1, max(1, total // dose)))
            wait_for(lambda target=target: clients.answered >= target, process)  # type: ignore[misc]
            if strike == "stop":
                place.halt(process)
                time.sleep(2.0)  # longer than its clients wait: they ask again
                os.kill(process.pid or 0, signal.SIGCONT)
                time.sleep(0.2)
            kill(process)
        process = start(serve, place.job, port)
        clients.end()
        kill(process)
        return dose

    return scene


# ── what comes back ──


def events(place: Place, dose: int) -> int:
    """Each event twice, in no order, before and after the sender knows; sender and reader are killed."""
    place.delivered = True
    hits = 0
    while hits < dose:
        hits += 1
        process = place.start()
        running = place.reach(15, process)
        _tell(place, part=0.5)
        reader = start(apply_events, place.job)
        time.sleep(place.chance.uniform(0, 0.2))
        kill(reader)
        kill(process)
        place.free_locks()
        if not running:
            break
    place.finish()
    _tell(place)
    for _ in range(2):
        start(apply_events, place.job).join(PATIENCE)
    return hits


def _tell(place: Place, part: float = 1.0) -> None:
    """What SES publishes of the mails that it has accepted so far."""
    told = []
    for mail in place.ses.messages():
        if place.chance.random() > part:
            continue
        attempt = Attempt(mail["tags"]["mailout_message"], int(mail["tags"]["mailout_epoch"]))
        for kind in ("Send", "Delivery"):
            event = ses_event(kind, mail["to"], attempt=attempt, ses_id=mail["id"])
            told += [Received(uuid_of(kind, mail["id"]), "sns", event)] * 2
    place.chance.shuffle(told)
    with closing(place.store()) as store:
        for start_at in range(0, len(told), 100):
            store.receive_events(told[start_at : start_at + 100])
