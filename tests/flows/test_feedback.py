"""`ingest_ses_events` and `reconcile` as Prefect runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.settings import get_current_settings

from flows.ingest_ses_events import ingest_ses_events
from flows.reconcile import reconcile
from flows.send_mailout import send_mailout
from gateway.prefect_events import Emitter
from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.base import ids
from mailout.letters.audience import subscriber_rows
from mailout.outbox.feedback.ingest import QueueMessage
from mailout.outbox.feedback.port import Received
from tests.prefect_server import wait_for
from tests.ses_events import ses_event

ANA = "ana@example.org"
Build = Callable[..., Engine]


def run(flow: Any, *arguments: Any) -> Any:
    return flow(*arguments, return_state=True)


def test_what_waits_is_applied_and_the_run_says_how_much(
    engine_with: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_with()

    waiting = [QueueMessage("1", ses_event("Complaint", "bo@example.org"), "r")]

    class Queue:
        def receive(self, wait: int = 20) -> list[QueueMessage]:
            return list(waiting)

        def delete(self, messages: object) -> None:
            waiting.clear()

    monkeypatch.setattr(wiring, "event_queue", lambda settings: Queue())
    engine.store.receive_events([Received("1", "sns", ses_event("Bounce", ANA)), Received("2", "sns", "?")])
    state = run(ingest_ses_events)
    assert state.message == "2 events applied, 2 subscribers changed, 1 could not be used."
    assert subscriber_rows.subscriber_counts(engine.store) == {"active": 1, "unsubscribed": 1, "bounced": 1}
    assert run(ingest_ses_events).message == "Nothing waits."


def test_what_the_gateway_emits_is_an_event_to_prefect(
    engine_with: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trigger waits for it by name; a form that Prefect refuses would only be a line in a log."""
    monkeypatch.setattr("gateway.prefect_events.TRIGGER_SECONDS", 0.0)  # nothing is deployed here
    api = get_current_settings().api.url
    assert api is not None

    async def emit() -> None:
        emitter = Emitter(api)
        emitter.emit("ses.events.received", {"n": 1})
        await asyncio.gather(*emitter._under_way)
        await emitter.close()

    asyncio.run(emit())
    wanted = {"filter": {"event": {"name": ["ses.events.received"]}}}
    with get_client(sync_client=True) as client:
        ask = partial(client.request, "POST", "/events/filter", json=wanted)
        found = wait_for(lambda: ask().json()["events"], "it is written down")
    assert [(event["resource"]["prefect.resource.id"], event["payload"]) for event in found] == [
        ("mailout.gateway", {"n": 1})
    ]


def test_reconcile_tells_how_the_books_stand(engine_with: Build, letter: str) -> None:
    engine = engine_with()
    run(send_mailout, letter)
    assert engine.store.mailout(ids.mailout_id("letter")).ledger.sent == 3
    state = run(reconcile)
    assert (state.name, state.message) == ("Completed", "0 attempts reaped, 0 unknown.")
