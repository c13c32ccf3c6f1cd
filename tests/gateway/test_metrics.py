"""What Prometheus gets from the gateway, and who may ask for it."""

from __future__ import annotations

import pytest
from httpx import Client

from mailout.adapters.sqlite import SqliteStore
from mailout.base.errors import StoreUnavailable
from mailout.insight.metrics.counted import counted
from mailout.outbox.delivery.protocol import Pace, Result, Step
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback.port import Received
from tests.clocks import FakeClock
from tests.contract.scenes import mailout
from tests.gateway.conftest import Open
from tests.prometheus import Metric, parse

TOKEN = "the token of these tests"


@pytest.fixture
def gateway(open_gateway: Open) -> Client:
    client = open_gateway(api_token=TOKEN, send_rate_per_sec=5)
    client.headers["Authorization"] = f"Bearer {TOKEN}"
    return client


def scraped(gateway: Client) -> dict[str, Metric]:
    answer = gateway.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return parse(answer.text)


def test_nobody_sees_them_without_the_token(gateway: Client, open_gateway: Open) -> None:
    """They tell how many people are written to, and when."""
    assert gateway.get("/metrics", headers={"Authorization": "Bearer another"}).status_code == 401
    assert open_gateway().get("/metrics").status_code == 403


def test_all_of_them_are_there_and_can_be_read(gateway: Client) -> None:
    told = scraped(gateway)
    assert {name: metric.type for name, metric in told.items()} == {
        "pipeline_state_transitions_total": "counter",
        "pipeline_validation_failures_total": "counter",
        "pipeline_retry_count_total": "counter",
        "pipeline_final_state_total": "counter",
        "mailout_defers_total": "counter",
        "mailout_sign_ups_total": "counter",
        "mailout_queue_depth": "gauge",
        "mailout_messages": "gauge",
        "mailout_event_lag_seconds": "gauge",
        "mailout_sender_sessions": "gauge",
        "mailout_send_rate": "gauge",
        "mailout_send_rate_allowed": "gauge",
    }


def test_another_process_s_sending_is_seen(gateway: Client, store: SqliteStore, clock: FakeClock) -> None:
    id = mailout(store, "ann@example.org", "bob@example.org", "cat@example.org")
    sender = counted(SqliteStore(store.db.path, clock), clock)
    session = sender.open_session(id, worker="w", transport="folder", lease=60)
    pace = Pace("folder", 5, lead=0.05)
    ann, _ = sender.step(Step(session, 1, 60, pace, want=2)).rows
    clock.sleep(6)
    sent = Result(ann.attempt, State.SENT, provider_message_id="m", duration_ms=250)
    sender.step(Step(session, 2, 60, pace, results=[sent]))
    store.receive_events([Received("1", "sns", "{}")])
    store.set_quota("folder", 1000, clock.now())
    clock.sleep(4)
    told = scraped(gateway)
    assert told["mailout_queue_depth"].value(status="PROCESSING") == 1
    assert [told["mailout_messages"].value(state=s) for s in ("pending", "in_flight", "sent")] == [1, 1, 1]
    assert told["pipeline_final_state_total"].value(state="SENT") == 1
    assert told["pipeline_processing_duration_seconds"].value(state="SENT", le="0.25") == 1
    assert told["mailout_sender_sessions"].value() == 1
    assert told["mailout_event_lag_seconds"].value() == 4
    assert told["mailout_send_rate"].value() == pytest.approx(2 / 60)
    assert told["mailout_send_rate_allowed"].value() == 5
    assert told["mailout_quota_left"].value() == 998
    sender.close()


def test_a_store_that_is_away_is_a_scrape_that_failed(
    gateway: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros would look like an empty queue."""

    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(store, "select", away)
    assert gateway.get("/metrics").status_code == 503
