"""Telling Prefect: soon, seldom, and never at the cost of an event."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import httpx
import pytest

from gateway import prefect_events
from gateway.prefect_events import EVENTS_EVENT, QUEUE_EVENT, Emitter, ThrottledEvent
from gateway.requests import EVENT as REQUEST_EVENT
from tests.gateway.conftest import Open
from tests.ses_events import ses_event
from tests.sns_messages import Topic


class Prefect:
    """Its API, as far as events go."""

    def __init__(self, status: int = 204) -> None:
        self.status = status
        self.events: list[dict[str, object]] = []
        self.triggers = [QUEUE_EVENT, EVENTS_EVENT, REQUEST_EVENT]
        self.waiting_runs = 0
        self.asked = 0

    def emitter(self) -> Emitter:
        client = httpx.AsyncClient(transport=httpx.MockTransport(self._answer))
        return Emitter("http://prefect/api/", client=client)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        if self.status >= 300:
            return httpx.Response(self.status)
        body = json.loads(request.content)
        match request.url.path:
            case "/api/flow_runs/count":
                assert body["deployments"]["name"]["any_"]
                return httpx.Response(200, json=self.waiting_runs)
            case "/api/automations/filter":
                rows = [{"enabled": True, "trigger": {"expect": [event]}} for event in self.triggers]
                return httpx.Response(200, json=rows)
            case "/api/events":
                self.events += body
                return httpx.Response(self.status)
        raise AssertionError(request.url)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefect_events, "FIRST_RETRY_SECONDS", 0.001)
    monkeypatch.setattr(prefect_events, "LAST_RETRY_SECONDS", 0.01)


async def until(what: Callable[[], object]) -> None:
    while not what():  # noqa: ASYNC110 (what a stub has been asked)
        await asyncio.sleep(0.002)


@pytest.mark.usefixtures("hurried")
def test_an_event_sent_before_prefect_answers_is_there_once_it_does() -> None:
    """Otherwise a letter asked for while everything starts waits for minutes."""
    prefect = Prefect(503)

    async def play() -> None:
        emitter = prefect.emitter()
        for ref in ("a.md", "b.md", "a.md"):
            emitter.emit(REQUEST_EVENT, {"ref": ref})
        await until(lambda: prefect.asked > 10)
        prefect.status = 204
        await until(lambda: len(prefect.events) >= 2)
        await emitter.close()

    asyncio.run(asyncio.wait_for(play(), 300))
    assert sorted(event["payload"]["ref"] for event in prefect.events) == ["a.md", "b.md"]  # type: ignore[index]


@pytest.mark.usefixtures("hurried")
def test_an_event_waits_until_a_trigger_for_it_is_deployed() -> None:
    """A server that has just built its database takes events, and nothing comes of them."""
    prefect = Prefect()
    prefect.triggers = []

    async def play() -> None:
        emitter = prefect.emitter()
        emitter.emit(REQUEST_EVENT, {"ref": "a.md"})
        await until(lambda: prefect.asked > 5)
        assert prefect.events == []
        prefect.triggers = [REQUEST_EVENT]
        await until(lambda: prefect.events)
        await emitter.close()

    asyncio.run(asyncio.wait_for(play(), 300))
    assert len(prefect.events) == 1


@pytest.mark.usefixtures("hurried")
def test_a_trigger_that_nobody_recognises_costs_two_minutes_and_no_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prefect_events, "TRIGGER_SECONDS", 0.0)
    prefect = Prefect()
    prefect.triggers = []

    async def play() -> None:
        emitter = prefect.emitter()
        emitter.emit(REQUEST_EVENT, {"ref": "a.md"})
        await until(lambda: prefect.events)
        await emitter.close()

    asyncio.run(asyncio.wait_for(play(), 300))


def test_while_a_run_is_about_to_begin_no_other_is_started_for_the_same() -> None:
    """On a slow machine one webhook would become nine runs; a request of its own needs its own."""
    prefect = Prefect()
    prefect.waiting_runs = 1

    async def play() -> None:
        emitter = prefect.emitter()
        assert await emitter.post(QUEUE_EVENT, {})
        assert prefect.events == []
        assert await emitter.post(REQUEST_EVENT, {"ref": "a.md"})
        prefect.waiting_runs = 0
        assert await emitter.post(QUEUE_EVENT, {})
        await emitter.close()

    asyncio.run(play())
    assert [event["event"] for event in prefect.events] == [REQUEST_EVENT, QUEUE_EVENT]


def test_prefect_hears_of_events_in_its_own_form(open_gateway: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.ses_events.EMIT_EVERY", 3600.0)  # however slowly the three are posted
    prefect = Prefect()
    gateway = open_gateway(emitter=prefect.emitter())
    for _ in range(3):
        body = Topic().notification(ses_event("Open"))
        assert gateway.post("/ses-events", content=body).status_code == 200
    gateway.get("/health")  # the loop has had its turn
    (event,) = prefect.events
    assert event["event"] == "ses.events.received"
    assert event["resource"] == {"prefect.resource.id": "mailout.gateway"}
    assert {"id", "occurred", "payload"} <= event.keys()


@pytest.mark.parametrize("status", [500, 404])
def test_a_prefect_that_fails_does_not_concern_sns(open_gateway: Open, status: int) -> None:
    gateway = open_gateway(emitter=Prefect(status).emitter())
    assert gateway.post("/ses-events", content=Topic().notification(ses_event("Open"))).status_code == 200


class Remembers:
    """An emitter that only remembers when it was asked to speak."""

    def __init__(self) -> None:
        self.after: list[float] = []

    def emit(self, event: str, payload: object = None, *, after: float = 0.0) -> None:
        self.after.append(after)


def test_many_occasions_are_two_events_the_first_and_the_last() -> None:
    """Without the second, what came after the first would wait for the schedule."""
    emitter = Remembers()

    async def play() -> None:
        event = ThrottledEvent(emitter, "ses.events.received", every=3600.0)  # type: ignore[arg-type]
        for _ in range(10):
            event.emit()

    asyncio.run(play())
    assert [round(after) for after in emitter.after] == [0, 3600]


def test_without_prefect_nothing_is_emitted() -> None:
    async def tasks_begun() -> int:
        ThrottledEvent(None, "ses.events.received", every=5.0).emit()
        return len(asyncio.all_tasks()) - 1  # this one

    assert asyncio.run(tasks_begun()) == 0
