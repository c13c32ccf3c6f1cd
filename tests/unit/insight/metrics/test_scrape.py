"""A scrape is cheap for ever, and what it has told once it does not take back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mailout.insight.metrics.counted import counted
from mailout.insight.metrics.scrape import scrape
from mailout.outbox.delivery.states import State
from tests.prometheus import parse
from tests.unit.outbox.delivery.sending import MAILOUT, Scene, scene

LARGE = ("email_outbox", "events_inbox", "delivery_events", "campaign_queue", "sender_sessions", "usage")


@pytest.fixture
def sent(tmp_path: Path) -> Iterator[Scene]:
    made = scene(tmp_path, 20)
    made.sender(counted(made.store, made.clock)).run(MAILOUT)
    made.store.complete(MAILOUT)
    made.store.set_quota("list", 1000, made.clock.now() - 60)
    yield made
    made.store.close()


def test_no_large_table_is_walked_through(sent: Scene) -> None:
    """With a million messages every scrape would take a second of the store's time, every 15 seconds."""
    connection = sent.store.db._connection
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    scrape(sent.store, scope="list", rate=5)
    connection.set_trace_callback(None)
    selects = [sql for sql in asked if not sql.startswith("--")]  # SQLite's own steps within a statement
    plans = [row["detail"] for sql in selects for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
    assert len(asked) >= 6
    assert plans
    plans = [plan for plan in plans if "events_inbox_waiting" not in plan]  # holds only what waits
    walked = [plan for plan in plans if plan.startswith("SCAN") and any(name in plan for name in LARGE)]
    assert walked == []
    assert not [plan for plan in plans if "email_outbox" in plan]


def test_what_was_counted_stays_when_old_mailouts_are_cleared_away(sent: Scene) -> None:
    """A counter that falls is taken for a restart: `increase` would show all of it as new."""
    before = parse(scrape(sent.store, scope="list", rate=5))
    with sent.store.db.write() as tx:
        tx.execute("DELETE FROM email_outbox")
        tx.execute("DELETE FROM campaign_queue")
    after = parse(scrape(sent.store, scope="list", rate=5))
    assert before["pipeline_final_state_total"].value(state=State.SENT) == 20
    for name, metric in before.items():
        if metric.type != "gauge":
            assert after[name] == metric


def test_what_nobody_can_tell_is_left_out(tmp_path: Path) -> None:
    """A quota of 0 would page somebody; there is none to run out."""
    fresh = scene(tmp_path, 0)
    told = parse(scrape(fresh.store, scope="list", rate=0))
    assert "mailout_quota_left" not in told
    assert "mailout_send_rate_allowed" not in told
    assert told["mailout_event_lag_seconds"].value() == 0
    fresh.store.close()


def test_counters_are_there_before_the_first_count(tmp_path: Path) -> None:
    """Else the first failure after a start is invisible to `increase`."""
    fresh = scene(tmp_path, 0)
    told = parse(scrape(fresh.store, scope="list", rate=5))
    assert {dict(of)["state"] for _, of in told["pipeline_state_transitions_total"].samples} == set(State)
    assert told["mailout_defers_total"].value(reason="reputation") == 0
    fresh.store.close()
