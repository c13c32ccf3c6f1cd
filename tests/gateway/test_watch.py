"""The gateway's watch: who finds something wakes a flow; who finds nothing leaves everybody alone."""

from __future__ import annotations

import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gateway import watch
from gateway.looks import FLOW_START_SECONDS, looks
from gateway.prefect_events import EVENTS_EVENT, QUEUE_EVENT, SINGLE_MAILS_EVENT
from gateway.watch import (
    FIRST_REPEAT_SECONDS,
    LAST_REPEAT_SECONDS,
    SAME_EVENT_SECONDS,
    Attention,
    Emit,
    Found,
    Look,
    Watch,
)
from mailout.adapters.sqlite import SqliteStore
from mailout.app import wiring
from mailout.base.clock import SystemClock
from mailout.base.errors import StoreUnavailable
from mailout.base.settings import Settings
from mailout.insight.history import history_rows
from mailout.kinds.mailouts.requests import EVENT_SECONDS
from mailout.kinds.single_mails.companies import Scope, add_token, new_token
from mailout.letters.content.port import Kind
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.feedback.ingest import QueueMessage
from mailout.outbox.feedback.port import Received
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import DeferReason, NewMailout
from mailout.outbox.queue.port import Request
from mailout.outbox.queue.unattended import JUST_ASKED, ONE_TURN
from tests.clocks import FakeClock
from tests.contract.scenes import Sender
from tests.gateway.conftest import Open
from tests.gateway.test_prefect_events import Prefect
from tests.prefect_server import wait_for
from tests.stubs.notion import TOKEN
from tests.stubs.notion_pages import p
from tests.stubs.notion_workspace import LETTER, MAILOUTS, mailout_page, workspace
from tests.stubs.running import notion_stub

TOPIC = "arn:aws:sns:eu-west-1:123456789012:ses-events"


def taken_into(events: list[str]) -> Emit:
    """Prefect takes every event."""

    def emit(event: str, payload: object) -> bool:
        events.append(event)
        return True

    return emit


class Watched:
    """All looks over one store, each made when the test says so; `events` are those of a round."""

    def __init__(
        self, store: SqliteStore, clock: FakeClock, pages: Any = None, queue: Any = None, **settings: Any
    ) -> None:
        self.clock = clock
        self.looks = list(looks(Settings(**settings), store, pages, queue))
        self._watch = Watch(self.looks, clock)
        self._attention = {look.name: Attention() for look in self.looks}

    def events(self, after: float = 0.0) -> list[str]:
        self.clock.sleep(after)
        events: list[str] = []
        for look in self.looks:
            self._watch.once(look, self._attention[look.name], taken_into(events))
        return events


@pytest.fixture
def watched(store: SqliteStore, clock: FakeClock, tmp_path: Path) -> Watched:
    return Watched(store, clock, mailout_home=tmp_path)


def queue_up(store: SqliteStore, ref: str = "a.md", **fields: Any) -> str:
    new = NewMailout(id=ref, kind=Kind.MARKDOWN, ref=ref, is_rehearsal=True, **fields)
    return store.enqueue(new).id


def test_an_idle_store_wakes_nobody(watched: Watched) -> None:
    assert [watched.events(5.0) for _ in range(50)] == [[]] * 50


def test_a_mailout_whose_time_has_come_wakes_the_queue_and_only_then(
    store: SqliteStore, watched: Watched, clock: FakeClock
) -> None:
    queue_up(store, scheduled_at=clock.now() + 100)
    assert watched.events(90) == []
    assert watched.events(11) == [QUEUE_EVENT]


def test_whoever_has_just_asked_for_a_mailout_is_left_to_send_it(
    store: SqliteStore, watched: Watched
) -> None:
    queue_up(store)
    assert watched.events() == []
    assert watched.events(JUST_ASKED + 1) == [QUEUE_EVENT]


def test_a_run_that_is_sending_takes_up_the_next_one_itself_unless_it_takes_too_long(
    store: SqliteStore, watched: Watched
) -> None:
    store.start(queue_up(store, "long.md"), "somebody")
    queue_up(store, "next.md")
    assert watched.events(JUST_ASKED + 5) == []
    assert watched.events(ONE_TURN + 1) == [QUEUE_EVENT]


def test_a_mailout_whose_sender_has_died_wakes_the_queue(store: SqliteStore, watched: Watched) -> None:
    store.start(queue_up(store), "somebody")
    assert watched.events(60) == []
    assert watched.events(61) == [QUEUE_EVENT]


def test_a_mail_to_people_wakes_nobody_who_only_rehearses(store: SqliteStore, watched: Watched) -> None:
    store.enqueue(NewMailout(id="real", kind=Kind.MARKDOWN, ref="real.md"))
    assert watched.events(1000) == []


def test_single_mails_get_a_sender_which_is_given_time_to_start(store: SqliteStore, watched: Watched) -> None:
    assert watched.events() == []
    add_token(store, new_token("acme", [Scope.SEND], None)[1])
    assert watched.events(2) == [SINGLE_MAILS_EVENT]
    for _ in range(20):  # no schedule would find them: the pauses must not grow
        assert watched.events(FLOW_START_SECONDS - 1) == []
        assert watched.events(1) == [SINGLE_MAILS_EVENT]
    Sender(store, None)
    assert watched.events(30) == []


def test_a_request_whose_event_was_lost_wakes_the_queue(store: SqliteStore, watched: Watched) -> None:
    store.ask(Request("a.md"), repeat=60)
    assert watched.events(EVENT_SECONDS - 1) == []
    assert watched.events(2) == [QUEUE_EVENT]


def test_nothing_is_woken_while_everything_is_paused(store: SqliteStore, watched: Watched) -> None:
    queue_up(store)
    store.ask(Request("a.md"), repeat=60)
    store.pause_all(True)
    assert watched.events(100) == []
    store.pause_all(False)
    assert watched.events() == [QUEUE_EVENT]


def test_a_mailout_held_until_it_is_tested_goes_on_after_the_test(
    store: SqliteStore, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.defer(queue_up(store), DeferReason.UNTESTED, None)
    assert watched.events(100) == []
    monkeypatch.setattr(queue_rows, "last_test", lambda store, ref: store.now())
    assert watched.events() == [QUEUE_EVENT]


def test_a_mailout_that_goes_slower_than_it_may_gets_help(
    store: SqliteStore, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.looks.rate_of", lambda begun, now: 1.0)  # a rehearsal has no limit
    store.start(queue_up(store), "somebody")
    assert watched.events() == []  # nothing is left to share
    monkeypatch.setattr("mailout.outbox.queue.unattended.would_help", lambda speed, rate, _: not rate)
    assert watched.events() == [QUEUE_EVENT]


def test_events_that_nobody_has_applied_wake_their_flow(store: SqliteStore, watched: Watched) -> None:
    store.receive_events([Received("1", "sns", "{}")])
    assert watched.events() == []  # the POST that brought it has sent Prefect an event
    assert watched.events(20) == [EVENTS_EVENT]


def test_a_ready_page_wakes_the_queue(
    store: SqliteStore, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with notion_stub() as notion:
        settings = Settings(notion_token=TOKEN, notion_base_url=notion.url, notion_db_mailouts=MAILOUTS)
        pages = wiring.notion_pages(settings, clock)
        assert pages is not None
        watched = Watched(store, clock, pages, mailout_home=tmp_path)
        for status, emitted in (("Draft", []), ("Ready", [QUEUE_EVENT])):
            notion.load(workspace(pages={LETTER: mailout_page("Hello", status)}, blocks={LETTER: [p("Hi")]}))
            assert watched.events(60) == emitted
        pages.close()


def test_drafts_and_ready_pages_are_kept_for_the_dashboard_and_wake_nobody(
    store: SqliteStore, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    other, sent = (f"{n}429989f-e8ac-4eff-bc8f-57f56486db54" for n in (3, 4))
    with notion_stub() as notion:
        settings = Settings(notion_token=TOKEN, notion_base_url=notion.url, notion_db_mailouts=MAILOUTS)
        pages = wiring.notion_pages(settings, clock)
        assert pages is not None
        watched = Watched(store, clock, pages, mailout_home=tmp_path)
        letter = mailout_page("Hello", "Draft")
        later = {
            **mailout_page("Winter", "Ready", send_at={"start": "2030-01-01"}),
            "last_edited_time": "2026-11-15T08:00:00Z",
        }
        done = mailout_page("Gone", "Send")
        notion.load(workspace(pages={LETTER: letter, other: later, sent: done}))
        assert watched.events(120) == []
        pages.close()
    found = history_rows.written_pages(store)
    assert found is not None
    assert found.read_at == clock.now()
    assert [(one.ref, one.subject, one.status, one.is_ready) for one in found.pages] == [
        (other, "Winter", "Ready", True),
        (LETTER, "Hello", "Draft", False),
    ]
    assert found.pages[0].send_at == 1893456000.0


def test_what_sqs_holds_comes_into_the_inbox_and_wakes_its_flow(
    store: SqliteStore, clock: FakeClock, tmp_path: Path
) -> None:
    class Queue:
        held = [[QueueMessage("1", '{"eventType": "Send"}', "receipt")]]  # noqa: RUF012

        def receive(self, wait: int = 20) -> list[QueueMessage]:
            return self.held.pop() if self.held else []

        def delete(self, messages: object) -> None:
            return None

    watched = Watched(store, clock, queue=Queue(), mailout_home=tmp_path, sns_topic_arns=(TOPIC,))
    assert watched.events() == [EVENTS_EVENT]
    assert len(feedback_rows.waiting_events(store, 10)) == 1
    assert watched.events(5) == []


def test_what_does_not_go_away_is_sent_again_ever_more_rarely() -> None:
    """An event may be lost; but whatever nobody can do would start a run every few seconds."""
    attention, emitted = Attention(), []
    for second in range(0, 3600, 5):
        if attention.due({"stuck": 0.0}, float(second)):
            attention.mark_emitted(float(second))
            emitted.append(second)
    gaps = [after - before for before, after in pairwise(emitted)]
    assert gaps[:2] == [FIRST_REPEAT_SECONDS, 2 * FIRST_REPEAT_SECONDS]
    assert gaps[-1] == LAST_REPEAT_SECONDS


def test_something_new_is_sent_at_once_whatever_else_is_stuck() -> None:
    attention = Attention()
    for moment in (0.0, 40.0, 120.0):
        assert attention.due({"stuck": 0.0}, moment)
        attention.mark_emitted(moment)
    assert attention.due({"stuck": 0.0}, 125.0) == []
    assert attention.due({"stuck": 0.0, "new": 0.0}, 126.0) == ["new"]


def test_several_looks_with_one_event_wake_one_run(clock: FakeClock) -> None:
    both = [Look(name, QUEUE_EVENT, 5.0, lambda: {"x": 0.0}) for name in ("one", "two")]
    emitted: list[str] = []
    watching = Watch(both, clock)
    for look in both:
        watching.once(look, Attention(), taken_into(emitted))
    assert emitted == [QUEUE_EVENT]
    clock.sleep(SAME_EVENT_SECONDS)
    assert watching.once(both[1], Attention(), taken_into(emitted))


def test_an_event_that_prefect_does_not_take_is_sent_again_as_soon_as_it_may(clock: FakeClock) -> None:
    """Counted as sent, a letter would wait for minutes after Prefect's server has come back."""
    look = Look("it", QUEUE_EVENT, 5.0, lambda: {"x": 0.0})
    watching, attention, tries = Watch([look], clock), Attention(), []
    for _ in range(10):
        assert not watching.once(look, attention, lambda event, _: tries.append(event) is not None)
        clock.sleep(SAME_EVENT_SECONDS)
    assert len(tries) == 10
    taken: list[str] = []
    assert watching.once(look, attention, taken_into(taken))
    clock.sleep(SAME_EVENT_SECONDS)
    assert not watching.once(look, attention, taken_into(taken))
    assert taken == [QUEUE_EVENT]


def test_a_look_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "FIRST_REPEAT_SECONDS", 0.01)
    tries, emitted = [], threading.Event()

    def find() -> Found:
        tries.append(1)
        if len(tries) < 3:
            raise StoreUnavailable("away") if len(tries) == 1 else ZeroDivisionError
        return {"there": 0.0}

    watching = Watch([Look("it", QUEUE_EVENT, 0.01, find)], SystemClock())
    watching.start(lambda event, payload: emitted.set() is None)
    assert emitted.wait(300)
    watching.stop()


def test_the_gateway_tells_prefect_what_its_watch_finds_and_ends_in_time(open_gateway: Open) -> None:
    prefect, waits = Prefect(), threading.Event()

    def never_answers() -> Found:
        waits.wait(300)
        return {}

    found = Look("it", QUEUE_EVENT, 0.01, lambda: {"there": 0.0})
    watching = Watch([found, Look("SQS", EVENTS_EVENT, 0.0, never_answers)], SystemClock())
    gateway = open_gateway(emitter=prefect.emitter(), watch=watching)
    wait_for(lambda: gateway.get("/health").is_success and prefect.events, "Prefect gets the event")
    assert prefect.events[0]["event"] == QUEUE_EVENT
    assert prefect.events[0]["payload"] == {"look": "it", "waiting": 1}
    waits.set()
