"""Whole runs of the queue on every store: the engine is the same, so the ends must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mailout.outbox.delivery import outbox_rows
from mailout.outbox.queue.mailout import DeferReason, MailoutOutcome, Status
from tests.clocks import NOON, FakeClock
from tests.contract.stores import StoreFactory
from tests.unit.outbox.queue.driving import Drive, drive


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def driven(factory: StoreFactory, folder: Path, clock: FakeClock, **settings: Any) -> Drive:
    return drive(folder / "home", clock, store=factory.make(clock), **settings)


def test_150_at_100_an_hour(factory: StoreFactory, folder: Path, clock: FakeClock) -> None:
    made = driven(factory, folder, clock, LIMIT_PER_HOUR="100")
    id = made.add("letter", 150)
    predicted = made.engine.queue_forecast.forecast(id)
    made.run()
    waits = made.store.mailout(id)
    assert (waits.defer_reason, waits.deferred_until) == (DeferReason.RATE_PER_HOUR, NOON + 3600)
    assert waits.ledger.sent == 100
    done = made.run_to_the_end(id)
    assert (done.outcome, done.ledger.sent) == (MailoutOutcome.SENT, 150)
    assert set(made.transport.accepted.values()) == {1}
    assert predicted is not None
    assert done.completed_at == pytest.approx(predicted.ends_at, abs=0.02 * 3600)


def test_a_warm_up_counts_from_the_first_day(factory: StoreFactory, folder: Path, clock: FakeClock) -> None:
    made = driven(factory, folder, clock, WARMUP="10,20", SEND_TIMEZONE="Europe/Berlin")
    made.run_to_the_end(made.add("letter", 50))
    days = [outbox_rows.usage(made.store, "all", "day", f"2026-11-{day}") for day in (16, 17, 18)]
    assert days == [10, 20, 20]


def test_companies_take_turns_and_the_urgent_goes_first(
    factory: StoreFactory, folder: Path, clock: FakeClock
) -> None:
    made = driven(factory, folder, clock)
    bulk = made.add("bulk", 700, company_id="acme")
    other = made.add("other", 100, company_id="zoo", scheduled_at=NOON + 5)
    urgent = made.add("urgent", 10, company_id="acme", priority=9, scheduled_at=NOON + 65)
    made.run()
    ended = {id: made.store.mailout(id).completed_at for id in (bulk, other, urgent)}
    assert sorted(ended, key=lambda id: ended[id]) == [other, urgent, bulk]
    assert {made.store.mailout(id).status for id in ended} == {Status.COMPLETED}
