"""Telling Prefect: soon, seldom, and never at the cost of an event."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from gateway.prefect_events import Emitter, ThrottledEvent
from tests.gateway.conftest import Open
from tests.ses_events import ses_event
from tests.sns_messages import Topic


class Prefect:
    """Its API, as far as events go."""

    def __init__(self, status: int = 204) -> None:
        self.status = status
        self.events: list[dict[str, object]] = []

    def emitter(self) -> Emitter:
        client = httpx.AsyncClient(transport=httpx.MockTransport(self._answer))
        return Emitter("http://prefect/api/", client=client)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        assert request.url == "http://prefect/api/events"
        self.events += json.loads(request.content)
        return httpx.Response(self.status)


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
