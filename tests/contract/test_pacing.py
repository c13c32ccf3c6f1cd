"""One pacer for all who share a store: slots on the store's clock, never nearer than the rate allows."""

from __future__ import annotations

from itertools import pairwise

import pytest

from mailout.outbox.delivery.protocol import SLACK
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import Sender, mailout
from tests.contract.stores import StoreFactory

PEOPLE = [f"p{number:02}@example.org" for number in range(60)]
SLOT_LEAD_SECONDS = 0.05


@pytest.fixture
def mailout_id(store: Store) -> str:
    return mailout(store, *PEOPLE)


def test_slots_are_an_interval_apart_and_begin_a_round_trip_from_now(store: Store, mailout_id: str) -> None:
    slots = [row.slot for row in Sender(store, mailout_id).begin(3, rate=10.0)]
    assert slots == pytest.approx([NOON + SLOT_LEAD_SECONDS + index * SLACK / 10 for index in range(3)])


def test_no_more_is_begun_than_the_next_second_can_send(store: Store, mailout_id: str) -> None:
    """What is begun and not sent is in doubt when the sender dies."""
    sender = Sender(store, mailout_id)
    first = sender.step(want=60, rate=10.0)
    assert len(first.rows) == 10
    assert all(row.slot <= NOON + SLOT_LEAD_SECONDS + 1.0 for row in first.rows)
    assert first.next_slot_at is None
    second = sender.step(want=60, rate=10.0)
    assert (list(second.rows), second.limited) == ([], None)
    assert second.next_slot_at == pytest.approx(first.rows[-1].slot + SLACK / 10)


def test_two_senders_share_one_pace(store: Store, factory: StoreFactory, mailout_id: str) -> None:
    """Each at the full rate would be twice the rate."""
    one, other = Sender(store, mailout_id), Sender(factory.open_again(), mailout_id)
    slots = []
    for tick in range(12):
        factory.set_now(NOON + tick * 0.25)
        for sender in (one, other):
            slots += [row.slot for row in sender.begin(2, rate=8.0)]
    assert len(slots) > 20
    assert all(later - earlier >= 0.999 * SLACK / 8 for earlier, later in pairwise(slots))


def test_slots_that_nobody_took_are_not_made_up_for(
    store: Store, factory: StoreFactory, mailout_id: str
) -> None:
    """Late is fine, catching up in a burst is not."""
    sender = Sender(store, mailout_id)
    sender.begin(2, rate=10.0)
    factory.set_now(NOON + 30)
    slots = [row.slot for row in sender.begin(20, rate=10.0)]
    assert (len(slots), slots[0]) == (10, pytest.approx(NOON + 30 + SLOT_LEAD_SECONDS))


def test_a_slow_rate_gives_one_slot_every_two_seconds(
    store: Store, factory: StoreFactory, mailout_id: str
) -> None:
    """At 0.5 a second the next slot lies beyond the horizon most of the time: wait, never reset."""
    sender, slots = Sender(store, mailout_id), []
    for tick in range(80):
        factory.set_now(NOON + tick * 0.25)
        slots += [row.slot for row in sender.begin(5, rate=0.5)]
    assert len(slots) == 11
    assert all(later - earlier >= 0.999 * SLACK * 2 for earlier, later in pairwise(slots))


def test_a_clock_that_goes_back_does_not_stop_the_sending(
    store: Store, factory: StoreFactory, mailout_id: str
) -> None:
    """Else a machine whose clock is set right by an hour sends nothing for that hour."""
    sender = Sender(store, mailout_id)
    sender.begin(2, rate=10.0)
    factory.set_now(NOON - 3600)
    (claimed,) = sender.begin(1, rate=10.0)
    assert claimed.slot == pytest.approx(NOON - 3600 + SLOT_LEAD_SECONDS)


def _interval(sender: Sender, rate: float = 10.0) -> float:
    first, second = sender.begin(2, rate=rate)
    return second.slot - first.slot


def test_throttled_the_pace_slows_and_recovers(store: Store, factory: StoreFactory, mailout_id: str) -> None:
    sender = Sender(store, mailout_id, lease=10**6)
    full = SLACK / 10
    sender.step(rate=10.0, want=1, throttled=True)
    factory.set_now(NOON + 5)
    slow = _interval(sender)
    assert full / 0.72 < slow < full / 0.7 + 1e-6
    factory.set_now(NOON + 185)
    assert full / 0.87 < _interval(sender) < full / 0.84
    factory.set_now(NOON + 3600)
    assert _interval(sender) == pytest.approx(full, abs=1e-6)


def test_a_busy_sender_that_is_throttled_slows_too(
    store: Store, factory: StoreFactory, mailout_id: str
) -> None:
    """Steps come several times a second: the one that tells of the throttle must still be heard."""
    sender = Sender(store, mailout_id)
    for tick in range(8):
        factory.set_now(NOON + tick * 0.25)
        sender.step(rate=10.0, want=1)
    factory.set_now(NOON + 2)
    sender.step(rate=10.0, want=1, throttled=True)
    factory.set_now(NOON + 5)
    assert _interval(sender) > SLACK / 10 / 0.72


def test_one_second_of_throttling_slows_once(store: Store, factory: StoreFactory, mailout_id: str) -> None:
    """Fifty calls in flight report the same throttle: the pace must not fall to nothing."""
    one, other = Sender(store, mailout_id), Sender(store, mailout_id)
    one.step(rate=10.0, want=1, throttled=True)
    factory.set_now(NOON + 0.3)
    other.step(rate=10.0, want=1, throttled=True)
    factory.set_now(NOON + 4)
    assert _interval(one) < SLACK / 10 / 0.7 + 1e-6
    factory.set_now(NOON + 8)
    other.step(rate=10.0, want=1, throttled=True)
    factory.set_now(NOON + 12)
    assert _interval(one) > SLACK / 10 / 0.6


def test_without_a_rate_everything_goes_at_once(store: Store, mailout_id: str) -> None:
    rows = Sender(store, mailout_id).begin(60)
    assert {row.slot for row in rows} == {None}
    assert len(rows) == 60


def test_without_a_rate_a_throttle_still_slows(store: Store, factory: StoreFactory, mailout_id: str) -> None:
    sender = Sender(store, mailout_id)
    sender.step(throttled=True)
    sender.step(want=1, throttled=True)
    factory.set_now(NOON + 2)
    assert _interval(sender, rate=0.0) > 0


def test_a_step_that_asks_for_nothing_can_still_tell_of_a_throttle(
    store: Store, factory: StoreFactory, mailout_id: str
) -> None:
    """The last results of a full sender may be the ones that were throttled."""
    sender = Sender(store, mailout_id)
    sender.step(rate=10.0, throttled=True)
    factory.set_now(NOON + 5)
    assert _interval(sender) > SLACK / 10 / 0.72
