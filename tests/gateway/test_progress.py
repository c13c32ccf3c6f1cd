"""The queue over HTTP: what managers and dashboards are told, who may ask, and what they can do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from httpx import Client

from gateway import progress
from gateway.access import ApiToken, WrongTokens
from gateway.progress import QueueOverHttp
from gateway.stream import Stream
from mailout.adapters.sqlite import SqliteStore
from mailout.app import wiring
from mailout.base.errors import StoreUnavailable
from mailout.base.ids import mailout_id
from mailout.base.settings import Settings
from mailout.insight.page_status import report_rows
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.model import Content
from mailout.letters.content.port import Kind
from mailout.outbox.delivery.protocol import Pace, Result, Step
from mailout.outbox.delivery.states import State
from mailout.outbox.queue.mailout import DeferReason, NewMailout, Status
from tests.clocks import NOON, FakeClock
from tests.contract.scenes import NOWHERE
from tests.gateway.conftest import Open
from tests.gateway.serving import served

TOKEN = "the token of these tests"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
POLL = "/mail/progress/poll/"
ACTS = ("cancel", "pause", "resume", "retry", "settle")


@pytest.fixture
def gateway(open_gateway: Open) -> Client:
    client = open_gateway(api_token=TOKEN, send_rate_per_sec=5, limit_per_hour=100)
    client.headers.update(HEADERS)
    return client


def add(store: SqliteStore, ref: str, people: int, **fields: Any) -> str:
    emails = [f"{ref}{n}@example.org" for n in range(people)]
    store.import_subscribers([SubscriberRow(email, email, lists=(ref,)) for email in emails])
    id = mailout_id(ref)
    fields.setdefault("is_rehearsal", True)  # this gateway's transport is the folder
    store.enqueue(NewMailout(id=id, kind=Kind.NOTION, ref=ref, subject=ref, list_key=ref, **fields))
    store.set_content(id, keep_content(store, Content(ref, "<p>x</p>", "x")), ref)
    while store.freeze_subscribers(id) is not None:
        continue
    return id


def end_one_as(store: SqliteStore, id: str, state: State) -> str:
    store.start(id, "worker")
    session = store.open_session(id, worker="w", transport="folder", lease=60)
    (row,) = store.step(Step(session, 1, 60, Pace("folder", 0), want=1)).rows
    store.step(
        Step(
            session,
            2,
            60,
            Pace("folder", 0),
            results=[Result(row.attempt, state, provider_message_id="m")],
            close=True,
        )
    )
    return row.attempt.id


# ── who may ask ──


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", POLL),
        ("GET", "/mail/progress/stream"),
        *(("POST", f"/mailouts/{NOWHERE}/{act}") for act in ACTS),
    ],
)
def test_nobody_gets_in_without_the_token(open_gateway: Open, method: str, path: str) -> None:
    """Subjects, counts and a button that cancels: not for whoever finds the address."""
    closed, guarded = open_gateway(), open_gateway(api_token=TOKEN)
    unset = closed.request(method, path, headers=HEADERS)
    assert unset.status_code == 403
    assert "API_TOKEN is not set" in unset.json()["error"]
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
        refused = guarded.request(method, path, headers=headers)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert TOKEN not in refused.text


# ── the poll ──


def test_an_empty_queue(gateway: Client) -> None:
    told = gateway.get(POLL).json()
    assert (
        told["active_campaign"] is told["next_campaign_at"] is told["reason_code"] is told["forecast"] is None
    )
    assert (told["queued_count"], told["queue"], told["all_paused"]) == (0, [], False)


def test_the_poll_tells_what_is_sent_and_what_comes_next(gateway: Client, store: SqliteStore) -> None:
    active = add(store, "active", 30)
    add(store, "later", 10, scheduled_at=NOON + 600)
    add(store, "soon", 10, scheduled_at=NOON + 300)
    store.start(active, "worker")
    told = gateway.get(POLL).json()
    assert told["active_campaign"]["id"] == active
    assert (told["queued_count"], told["next_campaign_at"]) == (2, "2026-11-16T12:05:00.000Z")
    assert (told["reason_code"], told["next_run_at"]) == (None, None)
    assert told["counts"]["pending"] == 30
    assert told["forecast"]["ends_at"] == "2026-11-16T12:00:06.030Z"
    assert [one["ledger"]["recipients"] for one in told["queue"]] == [30, 10, 10]


@pytest.mark.parametrize(
    "reason", [DeferReason.RATE_PER_HOUR, DeferReason.DAILY_LIMIT, DeferReason.QUOTA_EXHAUSTED]
)
def test_the_reason_and_the_time_are_the_queues_own(
    gateway: Client, store: SqliteStore, reason: DeferReason
) -> None:
    """Computed anywhere else, they would say something else one day."""
    id = add(store, "letter", 150)
    store.defer(id, reason, NOON + 3600)
    told = gateway.get(POLL).json()
    assert (told["reason_code"], told["next_run_at"]) == (reason, "2026-11-16T13:00:00.000Z")
    assert told["next_campaign_at"] == told["next_run_at"]
    assert told["active_campaign"] is None
    assert told["forecast"]["ends_at"] == "2026-11-16T14:00:10.050Z"  # 100 at one, 50 at two


def test_what_waits_for_a_person_has_a_reason_and_no_time(gateway: Client, store: SqliteStore) -> None:
    store.defer(add(store, "letter", 5), DeferReason.REPUTATION, None, "12 of 150 bounced.")
    told = gateway.get(POLL).json()
    assert (told["reason_code"], told["next_run_at"], told["forecast"]["ends_at"]) == (
        "reputation",
        None,
        None,
    )
    assert told["queue"][0]["defer_note"] == "12 of 150 bounced."


def test_the_poll_says_that_everything_is_paused(gateway: Client, store: SqliteStore) -> None:
    add(store, "letter", 5)
    store.pause_all(True)
    told = gateway.get(POLL).json()
    assert (told["all_paused"], told["reason_code"], told["next_campaign_at"]) == (True, "all_paused", None)


# ── the stream ──


class Looks:
    """An outlook that counts how often it was asked."""

    def __init__(self, queue_forecast: Any) -> None:
        self._queue_forecast = queue_forecast
        self.count = 0

    def snapshot(self) -> Any:
        self.count += 1
        return self._queue_forecast.snapshot()


def told_by(lines: Iterator[str]) -> dict[str, Any]:
    return next(json.loads(line[6:]) for line in lines if line.startswith("data: "))


@contextmanager
def listening(
    store: SqliteStore, listeners: int, every: float
) -> Iterator[tuple[Looks, list[Iterator[str]]]]:
    settings = Settings(api_token=TOKEN)
    looks = Looks(wiring.queue_forecast(settings, store))
    app = FastAPI()
    app.state.parts = {
        ApiToken: ApiToken(settings.api_token, WrongTokens()),
        QueueOverHttp: QueueOverHttp(settings, store, looks, every),  # type: ignore[arg-type]
    }
    app.include_router(progress.routes)
    with served(app) as client, ExitStack() as open_:
        answers = [
            open_.enter_context(client.stream("GET", "/mail/progress/stream", headers=HEADERS))
            for _ in range(listeners)
        ]
        assert {a.headers["content-type"].split(";")[0] for a in answers} == {"text/event-stream"}
        yield looks, [answer.iter_lines() for answer in answers]


def test_one_poller_serves_all_listeners(store: SqliteStore) -> None:
    """A poller each would let a few open dashboards wear the store out."""
    with listening(store, 3, every=3600.0) as (looks, lines):
        assert [told_by(each)["queued_count"] for each in lines] == [0, 0, 0]
        assert looks.count == 1


def test_all_listeners_are_told_what_has_changed(store: SqliteStore) -> None:
    with listening(store, 2, every=0.02) as (_, lines):
        assert [told_by(each)["queued_count"] for each in lines] == [0, 0]
        add(store, "letter", 5)
        for each in lines:
            while told_by(each)["counts"] is None:
                continue


def test_only_changes_are_sent_and_nobody_looks_once_nobody_listens() -> None:
    events, looks_after = asyncio.run(_hear())
    assert events == [{"as_of": 0, "sent": 0}, {"as_of": 3, "sent": 1}]
    assert looks_after == 0


async def _hear() -> tuple[list[dict[str, int]], int]:
    sent = [0, 0, 0, 1]
    looks = 0

    def look() -> dict[str, int]:
        nonlocal looks
        looks += 1
        if looks > len(sent):
            raise StoreUnavailable
        return {"as_of": looks - 1, "sent": sent[looks - 1]}

    stream = Stream(look, every=0.0)
    events = stream.events()
    told = [json.loads((await anext(events)).split(b"data: ")[1]) for _ in range(2)]
    await events.aclose()  # type: ignore[attr-defined]
    before = looks
    await asyncio.sleep(0.05)
    return told, looks - before


async def _all(events: AsyncIterator[bytes]) -> list[bytes]:
    return [event async for event in events]


def test_a_stream_that_can_tell_nothing_any_more_ends_and_the_next_one_looks_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A dashboard would show yesterday's counts for ever, kept alive by comments."""
    monkeypatch.setattr("gateway.stream.STILL_HERE_SECONDS", 0.01)
    looks: Iterator[Any] = iter([ZeroDivisionError("unforeseen"), {"sent": 1}])

    def look() -> dict[str, int]:
        found = next(looks)
        if isinstance(found, Exception):
            raise found
        return found

    async def hear() -> None:
        stream = Stream(look, every=60.0)
        with pytest.raises(ZeroDivisionError):
            await _all(stream.events())
        events = stream.events()
        while b'"sent": 1' not in await anext(events):
            continue
        await events.aclose()  # type: ignore[attr-defined]

    asyncio.run(hear())


# ── actions ──


def act(gateway: Client, id: str, name: str, body: Any = None) -> httpx.Response:
    return gateway.post(f"/mailouts/{id}/{name}", json=body)


def test_a_mailout_is_paused_resumed_and_cancelled(gateway: Client, store: SqliteStore) -> None:
    id = add(store, "letter", 5)
    paused = act(gateway, id, "pause", {"note": "The date is wrong."}).json()
    assert (paused["defer_reason"], paused["defer_note"]) == ("paused", "The date is wrong.")
    assert act(gateway, id, "resume").json()["defer_reason"] is None
    cancelled = act(gateway, id, "cancel").json()
    assert (cancelled["status"], cancelled["ledger"]["suppressed"]) == ("CANCELLED", 5)
    assert id in report_rows.due_reports(store)  # its page will be told


def test_failures_are_retried_and_doubts_settled(
    gateway: Client, store: SqliteStore, clock: FakeClock
) -> None:
    id = add(store, "letter", 3)
    end_one_as(store, id, State.FAILED)
    assert act(gateway, id, "retry").json()["ledger"]["failed"] == 0
    doubtful = end_one_as(store, id, State.UNKNOWN)
    early = act(gateway, id, "settle", {"as": "pending"})
    assert early.status_code == 409
    assert "wait" in early.json()["error"]
    settled = act(gateway, id, "settle", {"as": "sent", "messages": [doubtful]}).json()
    assert (settled["ledger"]["unknown"], settled["ledger"]["sent"]) == (0, 1)


@pytest.mark.parametrize(("name", "body"), [("resume", None), ("retry", None), ("settle", {"as": "sent"})])
def test_what_cannot_be_done_says_why(gateway: Client, store: SqliteStore, name: str, body: Any) -> None:
    refused = act(gateway, add(store, "letter", 1), name, body)
    assert refused.status_code == 409
    assert "there is nothing to" in refused.json()["error"]


@pytest.mark.parametrize("name", ACTS)
def test_a_mailout_that_is_not_there(gateway: Client, name: str) -> None:
    refused = act(gateway, NOWHERE, name, {"as": "sent"} if name == "settle" else None)
    assert refused.status_code == 404
    assert NOWHERE in refused.json()["error"]


def test_a_word_that_is_no_verdict_is_refused(gateway: Client, store: SqliteStore) -> None:
    id = add(store, "letter", 1)
    end_one_as(store, id, State.UNKNOWN)
    refused = act(gateway, id, "settle", {"as": "delivered"})
    assert refused.status_code == 422
    assert refused.json() == {"error": "as: Input should be 'sent', 'failed' or 'pending'."}
    assert store.mailout(id).ledger.unknown == 1
    assert store.mailout(id).status is Status.PROCESSING


def test_nobody_fills_our_memory_with_what_has_no_token(gateway: Client) -> None:
    """The framework reads a body before it looks at the token: 300 MB would be 600 MB of memory."""

    def endless() -> Iterator[bytes]:
        for _ in range(64):
            yield b" " * 65_536

    for name in ("settle", "pause"):
        refused = gateway.post(f"/mailouts/x/{name}", content=endless())
        assert (refused.status_code, refused.json()) == (413, {"error": "too large"})
