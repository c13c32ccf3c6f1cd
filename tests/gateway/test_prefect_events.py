"""Telling Prefect: soon, seldom, and never at the cost of an event."""

from __future__ import annotations

import asyncio
import json

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


def test_an_event_is_not_taken_until_prefect_answers_and_a_trigger_is_deployed() -> None:
    """A server that has just built its database takes events, and nothing comes of them: the watch would
    take its work for done."""
    prefect = Prefect(503)

    async def play() -> None:
        emitter = prefect.emitter()
        assert not await emitter.post(REQUEST_EVENT, {"ref": "a.md"})
        prefect.status, prefect.triggers = 204, []
        assert not await emitter.post(REQUEST_EVENT, {"ref": "a.md"})
        assert prefect.events == []
        prefect.triggers = [REQUEST_EVENT]
        assert await emitter.post(REQUEST_EVENT, {"ref": "a.md"})
        await emitter.close()

    asyncio.run(play())
    assert len(prefect.events) == 1


def test_a_trigger_that_nobody_recognises_costs_two_minutes_and_no_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prefect_events, "TRIGGER_SECONDS", 0.0)
    prefect = Prefect()
    prefect.triggers = []

    async def play() -> None:
        emitter = prefect.emitter()
        await emitter.post(REQUEST_EVENT, {"ref": "a.md"})
        await asyncio.sleep(0.01)
        assert await emitter.post(REQUEST_EVENT, {"ref": "a.md"})
        await emitter.close()

    asyncio.run(play())


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
    """An emitter that only remembers what it was asked to send."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def emit(self, event: str, payload: object = None) -> None:
        self.sent.append(event)


def test_many_occasions_are_one_event_every_few_seconds() -> None:
    """A thousand deliveries would be a thousand questions to Prefect."""
    emitter = Remembers()

    async def play() -> None:
        event = ThrottledEvent(emitter, "ses.events.received", every=3600.0)  # type: ignore[arg-type]
        now_and_then = ThrottledEvent(emitter, "now and then", every=0.0)  # type: ignore[arg-type]
        for _ in range(3):
            event.emit()
            now_and_then.emit()

    asyncio.run(play())
    assert sorted(emitter.sent) == [*["now and then"] * 3, "ses.events.received"]


def test_without_prefect_nothing_is_emitted() -> None:
    async def tasks_begun() -> int:
        ThrottledEvent(None, "ses.events.received", every=5.0).emit()
        return len(asyncio.all_tasks()) - 1  # this one

    assert asyncio.run(tasks_begun()) == 0
