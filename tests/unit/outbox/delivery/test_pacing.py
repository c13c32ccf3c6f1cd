"""The pacer's arithmetic, and its limit as a law."""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.outbox.delivery.pacing import (
    BULK_LIMIT,
    PaceState,
    bulk_size,
    reserve,
    tolerated_lateness,
)
from mailout.outbox.delivery.protocol import SLACK, Pace
from tests.clocks import NOON

PACE = Pace("account", 10)
RATES = st.one_of(st.sampled_from([0.5, 1.0, 5.0, 14.0, 200.0]), st.floats(0.2, 500.0))
ROUNDS = st.lists(
    st.tuples(
        st.floats(0.0, 3.0),  # time since the last round
        st.integers(0, 120),  # want
        st.integers(0, 120),  # how many of the slots are taken
        st.floats(0.0, 0.4),  # this sender's lead
        st.booleans(),  # throttled
    ),
    max_size=40,
)


@given(rate=RATES, rounds=ROUNDS)
def test_no_sliding_second_holds_more_than_the_rate_allows(
    rate: float, rounds: list[tuple[float, int, int, float, bool]]
) -> None:
    """The pace holds over any sequence of reservations by several senders. The account is at stake."""
    state, now, slots = PaceState(), NOON, list[float]()
    for passed, want, taken, lead, throttled in rounds:
        now += passed
        reservation = reserve(state, Pace("x", rate, lead=lead, throttled=throttled), now, want)
        assert 0 <= reservation.slots_free <= want
        count = min(taken, reservation.slots_free)
        slots += reservation.take(count)
        state = reservation.state_after(count)
    for index, slot in enumerate(slots):
        within = bisect_left(slots, slot + 1.0) - index
        assert within <= rate + max(1.0, rate / 100)
    assert all(later - earlier >= 1 / rate - 1e-6 for earlier, later in pairwise(slots))


@given(rate=RATES, rounds=ROUNDS)
def test_no_slot_lies_before_the_lead_or_beyond_the_horizon(
    rate: float, rounds: list[tuple[float, int, int, float, bool]]
) -> None:
    """Nearer than a round trip is late at once; further is in doubt for too long."""
    state, now = PaceState(), NOON
    for passed, want, _, lead, throttled in rounds:
        now += passed
        pace = Pace("x", rate, lead=lead, throttled=throttled)
        reservation = reserve(state, pace, now, want)
        for slot in reservation.take(reservation.slots_free):
            assert now + lead - 1e-6 <= slot <= now + lead + pace.horizon + 1e-6
        state = reservation.state_after(reservation.slots_free)


@given(rate=RATES, jump=st.floats(-7200.0, 7200.0))
def test_wherever_the_clock_jumps_a_slot_is_free_soon_after(rate: float, jump: float) -> None:
    """A clock that was set must not stop the sending."""
    pace = Pace("x", rate)
    first = reserve(PaceState(), pace, NOON, 1000)
    state, now = first.state_after(first.slots_free), NOON + jump
    waited = 0.0
    while not (free := reserve(state, pace, now, 1)).slots_free:
        state, now, waited = free.state_after(0), now + 0.5, waited + 0.5
        assert waited <= 3.0 + pace.lead + pace.horizon + 3 * SLACK / rate


def test_without_a_rate_there_are_no_slots_to_wait_for() -> None:
    reservation = reserve(PaceState(), Pace("x", 0.0), NOON, 500)
    assert (reservation.slots_free, reservation.take(2)) == (500, [None, None])


def test_a_throttle_slows_once_a_second_and_never_to_nothing() -> None:
    state, now = PaceState(), NOON
    throttled = Pace("x", 100.0, throttled=True)
    state = reserve(state, throttled, now, 0).state_after(0)
    assert state.factor == pytest.approx(PACE.slower)
    state = reserve(state, throttled, now + 0.9, 0).state_after(0)
    assert state.factor == pytest.approx(PACE.slower)
    for _ in range(100):
        now += 1.0
        state = reserve(state, throttled, now, 0).state_after(0)
    assert state.factor == pytest.approx(PACE.slowest)


@given(gaps=st.lists(st.floats(0.01, 0.9), min_size=1, max_size=30))
def test_a_throttle_is_heard_however_often_the_sender_steps(gaps: list[float]) -> None:
    state, now = PaceState(), NOON
    for gap in gaps:
        now += gap
        state = reserve(state, Pace("x", 10.0), now, 1).state_after(1)
    state = reserve(state, Pace("x", 10.0, throttled=True), now + 0.1, 1).state_after(1)
    assert state.factor_now(now + 0.1) == pytest.approx(PACE.slower)


def test_the_pace_recovers_by_five_per_cent_a_minute() -> None:
    state = reserve(PaceState(), Pace("x", 10.0, throttled=True), NOON, 0).state_after(0)
    assert state.factor_now(NOON + 60) == pytest.approx(PACE.slower + 0.05)
    for tick in range(120):  # asking often must not change how quickly it recovers
        state = reserve(state, Pace("x", 10.0), NOON + tick, 1).state_after(1)
    assert state.factor_now(NOON + 120) == pytest.approx(PACE.slower + 0.10)
    assert state.factor_now(NOON + 3600) == 1.0


@given(rate=st.floats(0.1, 1000.0))
def test_a_bulk_call_carries_no_more_than_a_second_of_sending(rate: float) -> None:
    size = bulk_size(rate)
    assert 1 <= size <= BULK_LIMIT
    assert size <= max(1.0, rate)


def test_bulk_calls_are_as_few_as_the_limit_allows() -> None:
    assert [bulk_size(rate) for rate in (0, 5, 14, 50, 60, 200)] == [50, 5, 14, 50, 30, 50]


def test_half_an_interval_is_tolerated_and_ten_milliseconds_at_least() -> None:
    assert tolerated_lateness(5.0) == pytest.approx(0.1)
    assert tolerated_lateness(500.0) == pytest.approx(0.010)
    assert tolerated_lateness(0) == math.inf
