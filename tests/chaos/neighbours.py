"""Faults of those around the sender: Postgres, Notion, and what comes back from SES."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

from mailout.base.ids import uuid_of
from mailout.outbox.delivery.protocol import Attempt
from mailout.outbox.feedback.port import Received
from tests.chaos.jobs import apply_events
from tests.chaos.places import PATIENCE, Place, Stage, clear, kill, wait_for
from tests.chaos.scenes import Fault
from tests.contract.postgres import new_server, starting
from tests.ses_events import ses_event
from tests.stubs.notion import TOKEN as NOTION_TOKEN
from tests.stubs.notion_pages import p
from tests.stubs.notion_workspace import LETTER, MAILOUTS, mailout_page, workspace
from tests.stubs.running import NotionStub, notion_stub

# ── Postgres ──


@cache
def _own_server(name: str) -> Any:
    return new_server()


@contextmanager
def on_own_postgres(stage: Stage, mode: str, store: str, people: int) -> Iterator[Place]:
    """A server that nobody else needs; it keeps every commit."""
    own = Stage(stage.folder, f"{stage.name}_pg", _own_server(stage.name).get_uri(), seed=stage.seed)
    with closing(own):
        place = own.place(mode, store, people, LOCK_SECONDS="20")
        place.server_name = stage.name
        try:
            yield place
        finally:
            clear(place)  # the next one's home has the same name


def postgres_away(seconds: float) -> Fault:
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
            with starting():
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


def notion_fails(fault: dict[str, Any], *, at_load: bool) -> Fault:
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
        reader = place.start(apply_events)
        time.sleep(place.chance.uniform(0, 0.2))
        kill(reader)
        kill(process)
        place.free_locks()
        if not running:
            break
    place.finish()
    _tell(place)
    for _ in range(2):
        place.start(apply_events).join(PATIENCE)
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
