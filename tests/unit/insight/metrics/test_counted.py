"""The counts are what happened, and never in the way of what happens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.base.errors import StoreUnavailable
from mailout.insight.metrics.counted import FLUSH_SECONDS, counted, counts_of
from mailout.insight.metrics.port import BUCKETS, Counter, Sample
from mailout.insight.metrics.scrape import rate_of, scrape
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import (
    Attempt,
    Outcome,
    OutcomeKind,
    Pace,
    Result,
    RetryPlan,
    Step,
    StepReply,
)
from mailout.outbox.delivery.states import State
from mailout.outbox.queue.mailout import DeferReason
from tests.clocks import NOON
from tests.prometheus import Metric, parse
from tests.unit.outbox.delivery.sending import MAILOUT, Scene, scene


@pytest.fixture
def five(tmp_path: Path) -> Iterator[Scene]:
    made = scene(tmp_path, 5)
    yield made
    made.store.close()


def read(store: Any) -> dict[str, Metric]:
    return parse(scrape(store, scope="list", rate=5))


def moved(store: Any, state: State) -> float:
    return read(store)[Counter.TRANSITIONS].value(state=state)


def test_a_run_is_counted_from_its_first_claim_to_its_last_result(five: Scene) -> None:
    """One retried and then sent, one refused for good, one invalid, one unknown, one sent."""
    scripted = {
        "p00000": [Outcome(OutcomeKind.TRANSIENT, code="NET", category="TRANSIENT_ERROR")],
        "p00001": [Outcome(OutcomeKind.PERMANENT, code="REJECTED")],
        "p00002": [Outcome(OutcomeKind.INVALID, code="INVALID_EMAIL")],
        "p00003": [Outcome(OutcomeKind.UNKNOWN)],
    }

    def answer(mail: Mail, nth: int) -> Outcome | None:
        left = scripted.get(mail.to.partition("@")[0])
        return left.pop() if left else None

    five.transport.answer, five.transport.latency = answer, 0.3
    store = counted(five.store, five.clock)
    five.sender(store, retry=RetryPlan(3, (1.0, 1.0))).run(MAILOUT)
    told = read(five.store)  # the counts are in the store, for other processes to see
    into = told[Counter.TRANSITIONS]
    ended = told["pipeline_final_state_total"]
    assert [into.value(state=s) for s in (State.RECEIVED, State.VALIDATED, State.SENT_ATTEMPT)] == [6, 6, 6]
    assert {s: into.value(state=s) for s in five.states()} == five.states()
    assert into.value(state=State.RETRY_SCHEDULED) == 1
    assert [ended.value(state=s) for s in (State.SENT, State.FAILED, State.VALIDATION_FAILED)] == [2, 1, 1]
    assert told[Counter.RETRIES].value(category="TRANSIENT_ERROR") == 1
    assert told[Counter.VALIDATION_FAILURES].value(type="RECIPIENT") == 1
    took = told["pipeline_processing_duration_seconds"]
    assert took.samples["pipeline_processing_duration_seconds_count", (("state", State.SENT),)] == 2
    assert took.value(state=State.SENT, le="0.25") == 0
    assert took.value(state=State.SENT, le="0.5") == 2


def test_a_throttled_message_is_tried_again_and_that_is_counted() -> None:
    throttled = Result(Attempt("m", 1), State.PENDING, code="SES_THROTTLING", category="QUOTA_ERROR")
    counts = counts_of(Step("s", 1, 60.0, Pace("ses", 5.0), results=[throttled]), StepReply(now=NOON))
    assert counts[Counter.RETRIES, "QUOTA_ERROR"] == 1


def test_what_people_and_the_queue_do_is_counted_at_once(five: Scene) -> None:
    store = counted(five.store, five.clock)
    store.defer(MAILOUT, DeferReason.PAUSED, None)
    store.defer(MAILOUT, DeferReason.TRANSIENT_ERRORS, NOON + 60)  # a person's hold stands
    defers = read(five.store)[Counter.DEFERS]
    assert defers.value(reason=DeferReason.PAUSED) == 1
    assert defers.value(reason=DeferReason.TRANSIENT_ERRORS) == 0
    store.cancel(MAILOUT)
    assert moved(five.store, State.SUPPRESSED) == 5
    store.cancel(MAILOUT)
    assert moved(five.store, State.SUPPRESSED) == 5


def test_a_lost_sender_and_a_person_s_word_are_counted(five: Scene) -> None:
    store = counted(five.store, five.clock)
    session = store.open_session(MAILOUT, worker="w", transport="list", lease=10)
    store.step(Step(session, 1, 10, Pace("list", 0), want=3))
    five.clock.sleep(60)
    assert store.reap(1) == 3
    assert moved(five.store, State.UNKNOWN) == 3
    assert store.settle(MAILOUT, State.FAILED, wait=0) == 3
    assert store.retry_failed(MAILOUT) == 3
    assert (moved(five.store, State.FAILED), moved(five.store, State.PENDING)) == (3, 3)


class Deaf:
    """A store that sends well and does not take counts."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.deaf = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def add_counts(self, counts: Mapping[Sample, float]) -> None:
        if self.deaf:
            raise StoreUnavailable
        self.store.add_counts(counts)


def test_counts_that_do_not_arrive_stop_nobody_and_arrive_later(five: Scene) -> None:
    deaf: Any = Deaf(five.store)
    store = counted(deaf, five.clock)
    five.sender(store).run(MAILOUT)
    assert five.states() == {State.SENT: 5}
    assert moved(five.store, State.SENT) == 0
    deaf.deaf = False
    store.close()
    five.store = type(five.store)(five.store.db.path, five.clock)
    assert moved(five.store, State.SENT) == 5


def test_a_sender_s_counts_go_to_the_store_every_few_seconds(five: Scene) -> None:
    """Not with every step: that would be a second commit for each."""
    store = counted(five.store, five.clock)
    session = store.open_session(MAILOUT, worker="w", transport="list", lease=100)
    store.step(Step(session, 1, 100, Pace("list", 0), want=1))
    assert moved(five.store, State.SENT_ATTEMPT) == 0
    five.clock.sleep(FLUSH_SECONDS)
    store.step(Step(session, 2, 100, Pace("list", 0), want=1))
    assert moved(five.store, State.SENT_ATTEMPT) == 2


@given(st.lists(st.integers(0, 60_000)))
def test_a_histogram_says_how_many_took_no_longer(durations: list[int]) -> None:
    results = [Result(Attempt("m", 1), State.SENT, duration_ms=ms) for ms in durations]
    counts = counts_of(Step("s", 1, 1, Pace("list", 0), results=results), StepReply(NOON))
    for end in BUCKETS:
        sample = ("pipeline_processing_duration_seconds_bucket", f"SENT {end:g}")
        assert counts.get(sample, 0) == sum(ms <= end * 1000 for ms in durations)


@given(st.floats(0, 59.999), st.integers(0, 500))
def test_a_steady_pace_is_told_as_it_is_at_any_second(second: float, rate: int) -> None:
    """Counts are kept by the minute; a rate that fell to 0 at every full minute would page somebody."""
    begun = [(NOON - 60, 60 * rate), (NOON, round(second * rate))]
    assert abs(rate_of(begun, NOON + second) - rate) <= 0.01
