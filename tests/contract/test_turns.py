"""What the queue remembers between runs: pauses, what a person knew, who sent last, when it all began."""

from __future__ import annotations

import json

import pytest

from mailout.base.errors import NotFound
from mailout.base.ids import uuid_of
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.model import Content
from mailout.letters.content.port import Kind
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.states import State
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.deferrals import may_be_a_duplicate
from mailout.outbox.queue.mailout import DeferReason, NewMailout, Status
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import (
    ACCOUNT,
    NOWHERE,
    Sender,
    buckets,
    enqueue,
    freeze,
    mailout,
    result,
    subscribe,
)
from tests.contract.stores import StoreFactory

ANN, BOB, CAT = "ann@example.org", "bob@example.org", "cat@example.org"
WEEK = 7 * 86_400.0


def send_one(store: Store, id: str) -> None:
    sender = Sender(store, id)
    sender.step(results=[result(sender.begin_one())], close=True)


# ── pauses after transient errors ──


def test_pauses_in_a_row_are_counted_until_something_is_sent(store: Store) -> None:
    """Uncounted, a provider that is down for hours would be tried every minute of them."""
    id = mailout(store, ANN, BOB)
    counts = []
    for _ in range(3):
        counts.append(store.defer(id, DeferReason.TRANSIENT_ERRORS, NOON).pauses_in_a_row)
        store.start(id, "worker")
    assert counts == [1, 2, 3]
    send_one(store, id)
    assert store.mailout(id).pauses_in_a_row == 0
    assert store.defer(id, DeferReason.TRANSIENT_ERRORS, NOON).pauses_in_a_row == 1


def test_told_twice_it_is_one_pause(store: Store) -> None:
    """An answer that was lost is asked for again."""
    id = mailout(store, ANN)
    for _ in range(2):
        assert store.defer(id, DeferReason.TRANSIENT_ERRORS, NOON + 60).pauses_in_a_row == 1


def test_another_wait_is_no_pause(store: Store) -> None:
    id = mailout(store, ANN)
    store.defer(id, DeferReason.TRANSIENT_ERRORS, NOON)
    store.start(id, "worker")
    assert store.defer(id, DeferReason.RATE_PER_HOUR, NOON).pauses_in_a_row == 1


# ── what a person has acknowledged ──


def test_resuming_remembers_what_the_person_knew(store: Store, factory: StoreFactory) -> None:
    """Else the same numbers would hold it again the moment it goes on."""
    id = mailout(store, ANN, BOB)
    send_one(store, id)
    factory.raw("UPDATE campaign_queue SET metrics = ?", (json.dumps({"bounced": 7, "opened": 9}),))
    store.defer(id, DeferReason.REPUTATION, None)
    assert store.resume(id).acknowledged == {"sent": 1, "bounced": 7, "complained": 0}
    store.defer(id, DeferReason.DUPLICATE_CONTENT, None)
    assert store.resume(id).acknowledged == {
        "sent": 1,
        "bounced": 7,
        "complained": 0,
        "duplicate_content": 1,
    }


def test_ending_a_pause_acknowledges_nothing(store: Store) -> None:
    id = mailout(store, ANN)
    store.defer(id, DeferReason.PAUSED, None)
    assert store.resume(id).acknowledged == {}


# ── letting go ──


def test_a_released_mailout_waits_and_is_nobodys(store: Store) -> None:
    """After Ctrl-C the status must not say that somebody is sending."""
    id = mailout(store, ANN, BOB)
    send_one(store, id)
    released = store.release(id)
    assert (released.status, released.locked_by, released.defer_reason) == (Status.PENDING, None, None)
    assert [found.id for found in queue_rows.due_mailouts(store, 300.0)] == [id]


def test_a_mailout_that_another_one_sends_is_not_released(store: Store, factory: StoreFactory) -> None:
    id = mailout(store, ANN)
    Sender(store, id, lease=60.0)
    assert store.release(id).status is Status.PROCESSING
    factory.set_now(NOON + 61)
    assert store.release(id).status is Status.PENDING


def test_a_hold_and_an_end_survive_a_release(store: Store) -> None:
    held, ended = mailout(store, ANN, ref="held"), mailout(store, ref="ended")
    store.defer(held, DeferReason.PAUSED, None)
    store.cancel(ended)
    for id in (held, ended):
        before = store.mailout(id)
        assert store.release(id) == before
    with pytest.raises(NotFound):
        store.release(NOWHERE)


# ── the same content twice ──


@pytest.fixture
def first(store: Store, factory: StoreFactory) -> str:
    """A mailout that went out, an hour before `NOON`."""
    factory.set_now(NOON - 3600)
    id = mailout(store, ANN, BOB, ref="first", list_key="weekly")
    send_one(store, id)
    send_one(store, id)
    store.complete(id)
    factory.set_now(NOON)
    return id


def same(store: Store, id: str, since: float = NOON - WEEK) -> str | None:
    store.start(id, "worker")
    found = queue_rows.same_content(store, id, since)
    return found.id if found else None


def test_the_same_content_to_the_same_list_is_found(store: Store, first: str) -> None:
    """A page that was copied to be edited, and sent unedited."""
    assert same(store, enqueue(store, "copy", list_key="weekly")) == first


def test_another_list_other_content_or_a_test_are_something_else(store: Store, first: str) -> None:
    assert same(store, enqueue(store, "other list", list_key="daily")) is None
    assert same(store, enqueue(store, "everybody")) is None
    other = keep_content(store, Content("Other", "<p>Other</p>", "Other"))
    edited = uuid_of("edited")
    enqueue(store, "bare", id=uuid_of("bare"), list_key="weekly", is_test=True)
    store.cancel(enqueue(store, "cancelled", id=uuid_of("cancelled"), list_key="weekly"))
    store.enqueue(NewMailout(id=edited, kind=Kind.NOTION, ref="edited", list_key="weekly"))
    store.set_content(edited, other, "Other")
    assert same(store, edited) is None
    assert same(store, first) is None


def test_after_a_week_it_may_go_out_again(store: Store, factory: StoreFactory, first: str) -> None:
    factory.set_now(NOON + WEEK)
    assert same(store, enqueue(store, "copy", list_key="weekly"), since=NOON) is None


def test_of_two_that_begin_together_the_first_goes(store: Store, factory: StoreFactory) -> None:
    """Were both held, nobody would get the letter; were none, everybody would get two."""
    subscribe(store, ANN)
    one, other = enqueue(store, "one"), enqueue(store, "other")
    freeze(store, one)
    store.start(one, "worker")
    factory.set_now(NOON + 1)
    store.start(other, "worker")
    assert queue_rows.same_content(store, one, NOON - WEEK) is None
    assert getattr(queue_rows.same_content(store, other, NOON - WEEK), "id", None) == one


def test_a_page_that_sent_nothing_is_no_duplicate(store: Store, factory: StoreFactory) -> None:
    one = enqueue(store, "one")
    store.start(one, "worker")
    store.defer(one, DeferReason.PAUSED, None)
    factory.set_now(NOON + 1)
    assert same(store, enqueue(store, "other")) is None


def test_one_that_tried_first_and_sent_nothing_waits_for_a_copy_that_went_out(
    store: Store, factory: StoreFactory
) -> None:
    """SES did not answer, the writer sent a copy, and an hour later the first went on: all got it twice."""
    one = enqueue(store, "one")
    store.start(one, "worker")
    store.defer(one, DeferReason.TRANSIENT_ERRORS, NOON + 3600)
    factory.set_now(NOON + 60)
    copy = mailout(store, ANN, BOB, ref="copy")
    assert same(store, copy) is None
    factory.set_now(NOON + 3600)
    assert same(store, one) == copy  # it is about to send
    sender = Sender(store, copy)
    begun = sender.begin_one()
    assert same(store, one) == copy  # somebody may have it
    sender.step(results=[result(begun)], close=True)
    assert same(store, one) == copy
    assert not may_be_a_duplicate(store.mailout(copy))


def test_of_two_copies_that_try_again_at_once_exactly_one_goes(store: Store, factory: StoreFactory) -> None:
    """The same outage had put both off. Each held the other, or neither did."""
    one, copy = enqueue(store, "one"), mailout(store, ANN, ref="copy")
    for id, at in ((one, NOON), (copy, NOON + 60)):
        factory.set_now(at)
        store.start(id, "worker")
        store.defer(id, DeferReason.TRANSIENT_ERRORS, NOON + 3600)
    factory.set_now(NOON + 3600)
    store.start(copy, "worker")
    factory.set_now(NOON + 3601)
    store.start(one, "worker")
    factory.set_now(NOON + 3602)
    Sender(store, copy).step()  # heard of again, and nothing has left
    found = [queue_rows.same_content(store, id, NOON - 86_400) for id in (one, copy)]
    assert [None if other is None else other.id for other in found] == [copy, None]


def test_a_clock_that_was_set_back_lets_no_copy_pass(store: Store, factory: StoreFactory, first: str) -> None:
    factory.set_now(NOON - 7200)
    assert same(store, enqueue(store, "copy", list_key="weekly")) == first


# ── turns, warm-up, the provider's window ──


def test_each_companys_last_turn_is_known(store: Store, factory: StoreFactory) -> None:
    assert queue_rows.last_turns(store) == {}
    one = mailout(store, ANN, ref="one", company_id="acme")
    factory.set_now(NOON + 60)
    mailout(store, ref="other", company_id="zoo")
    assert queue_rows.last_turns(store) == {"acme": NOON, "zoo": NOON + 60}
    factory.set_now(NOON + 90)
    Sender(store, one).step(want=1)
    assert queue_rows.last_turns(store) == {"acme": NOON + 90, "zoo": NOON + 60}


def test_the_first_day_is_the_one_on_which_mail_first_left(store: Store, factory: StoreFactory) -> None:
    """A warm-up that began again every day would never let more than its first ceiling out."""
    id = mailout(store, ANN, BOB)
    sender = Sender(store, id, lease=10 * 86_400.0)
    assert outbox_rows.first_day(store, ACCOUNT) is None
    sender.step(want=0, buckets=buckets(NOON), throttled=True)
    sender.step(want=1, buckets=buckets(NOON, day=0))
    assert outbox_rows.first_day(store, ACCOUNT) is None
    sender.begin_one(buckets=buckets(NOON))
    factory.set_now(NOON + 86_400)
    sender.begin_one(buckets=buckets(NOON + 86_400))
    assert outbox_rows.first_day(store, ACCOUNT) == "2026-11-16"
    assert outbox_rows.first_day(store, "another account") is None


def test_what_was_begun_is_known_by_the_minute(store: Store, factory: StoreFactory) -> None:
    """A rolling quota frees what left a day ago: by the minute, not by the hour."""
    id = mailout(store, ANN, BOB, CAT)
    sender = Sender(store, id, lease=86_400.0)
    sender.begin(2)
    factory.set_now(NOON + 90)
    cat = sender.begin_one()
    assert list(outbox_rows.begun_since(store, NOON)) == [(NOON, 2), (NOON + 60, 1)]
    assert list(outbox_rows.begun_since(store, NOON + 60)) == [(NOON + 60, 1)]
    sender.step(results=[result(cat, State.RETRY_SCHEDULED, retry_in=1.0, uncharge=True)])
    assert list(outbox_rows.begun_since(store, NOON)) == [(NOON, 2)]
