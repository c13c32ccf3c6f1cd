"""How much a step asks for: more where the store is far away, and never more than a second of sending."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.outbox.delivery.concurrency import LARGER_STEPS, TRIPS_SHARE, CallCapacity, batch_size
from mailout.outbox.delivery.options import Ended
from mailout.outbox.delivery.protocol import Step, StepReply
from tests.unit.outbox.delivery.sending import MAILOUT, Scene, scene


class FarStore:
    """Each call takes its time on the way there and back."""

    def __init__(self, it: Scene, trip: float) -> None:
        self._it = it
        self._trip = trip
        self.wants: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._it.store, name)

    def now(self) -> float:
        self._it.clock.sleep(self._trip)
        return self._it.store.now()

    def step(self, step: Step) -> StepReply:
        self._it.clock.sleep(self._trip)
        self.wants.append(step.want)
        return self._it.store.step(step)


def sent_through(tmp_path: Path, trip: float, people: int = 2000, **options: Any) -> tuple[Scene, FarStore]:
    it = scene(tmp_path, people, max_batch=50)
    store = FarStore(it, trip)
    assert it.sender(store, **options).run(MAILOUT).ended is Ended.DONE
    assert list(it.transport.accepted.items()) == [(email, 1) for email in it.people]
    return it, store


def test_a_store_far_away_is_asked_for_more_at_once_and_everybody_still_gets_it_once_in_order(
    tmp_path: Path,
) -> None:
    """With 50 a step and 20 ms each way a mailout of a million would spend seven minutes on the way alone."""
    _, far = sent_through(tmp_path / "far", 0.02)
    assert max(far.wants) == 50 * LARGER_STEPS
    assert len(far.wants) < 15
    _, near = sent_through(tmp_path / "near", 0.0)
    assert max(near.wants) == 50


def test_a_rate_that_small_steps_reach_keeps_them_small(tmp_path: Path) -> None:
    """Large ones put more in doubt when the process dies, and reach nothing."""
    _, far = sent_through(tmp_path, 0.02, people=300, rate=100.0)
    assert max(far.wants) <= 50


@given(
    rate=st.floats(0.5, 5000),
    batch=st.integers(1, 1000),
    held=st.integers(0, 3000),
    trip=st.floats(0, 2),
    latency=st.floats(0.001, 5),
    concurrency=st.integers(1, 50),
    group=st.sampled_from([1, 14, 50]),
)
def test_at_most_a_second_of_sending_is_ever_in_doubt(
    rate: float, batch: int, held: int, trip: float, latency: float, concurrency: int, group: int
) -> None:
    work = CallCapacity(concurrency, group, latency)
    if work.reach < rate:
        return
    wish = batch_size(
        work,
        rate=rate,
        batch=batch,
        held=held,
        lead=0.05 + trip,
        round_trip=trip,
        empty_trip=trip,
        tolerance=0.01,
    )
    assert wish.want <= max(0, rate - held) + 1
    assert wish.want <= batch * LARGER_STEPS
    if trip == 0:
        assert wish.want <= batch


@pytest.mark.parametrize(("rate", "trip", "most"), [(1000, 0.03, 300), (1000, 0.001, 50), (5000, 0.05, 500)])
def test_a_step_is_as_large_as_the_way_asks_for(rate: float, trip: float, most: int) -> None:
    work = CallCapacity(50, 50, 0.02)
    sizes = {"lead": 0.05, "round_trip": trip, "empty_trip": trip, "tolerance": 0.01}
    wish = batch_size(work, rate=rate, batch=50, held=0, **sizes)
    assert wish.want == most
    assert trip * rate / wish.want <= max(TRIPS_SHARE, trip * rate / (50 * LARGER_STEPS))
