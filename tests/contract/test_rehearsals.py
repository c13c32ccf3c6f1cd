"""A rehearsal is not a sending: whatever it does, real mail finds everything as it was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mailout.base.ids import mailout_id, rehearsal_id
from mailout.insight.page_status import report_rows
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content.content_rows import keep_content
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.protocol import REHEARSED
from mailout.outbox.delivery.single_mails import Category
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.queue import queue_rows
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import ACCOUNT, LETTER, Sender, buckets, enqueue, freeze, mailout, result
from tests.contract.stores import StoreFactory
from tests.contract.test_single_mails import mail

ANN, BOB = "ann@example.org", "bob@example.org"
REHEARSAL = rehearsal_id("page", LETTER.hash)


def rehearsed_buckets(**limits: int) -> list[object]:
    return [replace(one, key=one.key + REHEARSED) for one in buckets(NOON, **limits)]


def test_a_rehearsal_is_remembered_as_one(store: Store) -> None:
    id = enqueue(store, id=REHEARSAL, is_rehearsal=True)
    assert id != mailout_id("page")
    assert store.mailout(id).is_rehearsal
    assert not store.mailout(enqueue(store)).is_rehearsal


def test_it_has_counters_of_its_own(store: Store) -> None:
    """Neither the hour's limit nor the provider's quota has less for real mail; it has its own limit."""
    store.set_quota(ACCOUNT, 10, NOON)
    id = mailout(store, ANN, BOB, id=REHEARSAL, is_rehearsal=True)
    sender = Sender(store, id)
    one = sender.begin_one(buckets=rehearsed_buckets(hour=1))
    assert sender.step(want=1, buckets=rehearsed_buckets(hour=1)).limited == "hour"
    assert outbox_rows.quota(store, ACCOUNT) == 10
    assert outbox_rows.usage(store, "all", "hour", buckets(NOON)[0].key) == 0
    assert (
        list(outbox_rows.begun_since(store, 0.0)),
        list(outbox_rows.begun_since(store, 0.0, rehearsal=True)),
    ) == ([], [(NOON, 1)])
    sender.step(results=[result(one, State.PENDING)])
    assert list(outbox_rows.begun_since(store, 0.0, rehearsal=True)) == [], (
        "what is given back is given back there"
    )
    assert feedback_rows.usage_drift(store) == []
    real = mailout(store, ANN, BOB)
    assert Sender(store, real).begin(2, buckets=buckets(NOON, hour=2)), "the limit is untouched"


def test_it_holds_back_nothing_with_the_same_content(store: Store) -> None:
    id = mailout(store, ANN, id=rehearsal_id("other", LETTER.hash), ref="other", is_rehearsal=True)
    sender = Sender(store, id)
    sender.step(results=[result(sender.begin_one())], close=True)
    store.complete(id)
    assert queue_rows.same_content(store, mailout(store, ANN), 0.0) is None


def test_the_link_of_a_single_marketing_mail_is_as_fresh_as_a_letter_s(store: Store) -> None:
    """A scanner that follows it must not end anybody's mail."""
    store.accept_single_mails(
        [mail("receipt", email=ANN), mail("offer", email=BOB, category=Category.MARKETING)]
    )
    sender = Sender(store, None)
    sender.step(results=[result(one) for one in sender.begin(2)])
    assert feedback_rows.mailed_since(store, BOB, NOON - 86_400)
    assert not feedback_rows.mailed_since(store, ANN, NOON - 86_400), "it has no such link"


@pytest.mark.parametrize("rehearsal", [True, False])
def test_its_links_are_as_fresh_as_a_letter_s(store: Store, factory: StoreFactory, rehearsal: bool) -> None:
    """Whoever tries a rehearsal's link is asked before a real person is unsubscribed."""
    assert not feedback_rows.mailed_since(store, ANN, NOON - 86_400)
    id = mailout(store, ANN, ref="letter", is_rehearsal=rehearsal)
    sender = Sender(store, id)
    sender.step(results=[result(sender.begin_one())], close=True)
    store.complete(id)
    assert feedback_rows.mailed_since(store, ANN, NOON - 86_400)
    assert not feedback_rows.mailed_since(store, BOB, NOON - 86_400)
    factory.set_now(NOON + 90_000)
    assert not feedback_rows.mailed_since(store, ANN, store.now() - 86_400)


def test_only_a_test_that_reached_somebody_is_a_test(store: Store) -> None:
    def tested(run: str, **fields: bool) -> None:
        id = mailout(store, ANN, id=mailout_id(run), ref="page", is_test=True, **fields)
        sender = Sender(store, id)
        sender.step(results=[result(sender.begin_one())], close=True)
        store.complete(id)

    enqueue(store)
    tested("in a folder", is_rehearsal=True)
    assert queue_rows.last_test(store, content_hash=LETTER.hash) is None
    tested("to somebody")
    assert (
        queue_rows.last_test(store, content_hash=LETTER.hash)
        == NOON
        == queue_rows.last_test(store, ref="page")
    )
    assert queue_rows.last_test(store, content_hash="another") is None
    assert queue_rows.last_test(store, ref="another") is None


def test_content_can_be_replaced_until_a_message_was_tried(store: Store) -> None:
    id = enqueue(store)
    edited = replace(LETTER, text="Hello again")
    keep_content(store, edited)
    assert store.set_content(id, edited.hash, "News").content_hash == LETTER.hash
    assert store.set_content(id, edited.hash, "News", replace=True).content_hash == edited.hash
    begun = mailout(store, ANN, ref="begun")
    sender = Sender(store, begun)
    sender.step(withdraw=[sender.begin_one().attempt], close=True)
    store.release(begun)
    assert store.set_content(begun, edited.hash, "News", replace=True).content_hash == LETTER.hash


def test_another_content_may_know_something_else_of_its_readers(store: Store) -> None:
    store.import_subscribers([SubscriberRow(ANN, ANN, attributes={"name": "Ann", "city": "Porto"})])
    id = enqueue(store)
    freeze(store, id, attributes=["name"])
    edited = replace(LETTER, text="Hello again")
    keep_content(store, edited)
    replaced = store.set_content(id, edited.hash, "News", replace=True)
    assert (replaced.frozen_at, replaced.ledger.recipients, replaced.ledger.pending) == (None, 0, 0)
    freeze(store, id, attributes=["name", "city"])
    assert store.mailout(id).ledger.pending == 1
    store.start(id, "worker")
    assert Sender(store, id).begin_one().variables == {"name": "Ann", "city": "Porto"}
    again = store.set_content(id, edited.hash, "News", replace=True)
    assert again.frozen_at is not None, "the same content: nothing changes"


def test_a_mailout_that_was_cancelled_before_it_began_may_be_sent_after_all(store: Store) -> None:
    id = mailout(store, ANN, BOB)
    assert not store.discard_unbegun(id), "it is not cancelled"
    store.ask_report(id)
    store.cancel(id)
    assert store.discard_unbegun(id)
    assert (queue_rows.mailouts(store), report_rows.due_reports(store)) == ([], {})
    assert mailout(store, ANN, BOB) == id
    assert store.mailout(id).ledger.pending == 2
    sender = Sender(store, id)
    begun = sender.begin_one()
    sender.step(withdraw=[begun.attempt], close=True)
    store.cancel(id)
    assert not store.discard_unbegun(id), "an attempt was begun: its epoch must not be used again"


def test_how_many_would_get_it(store: Store) -> None:
    mailout(store, ANN, list_key="weekly")
    mailout(store, BOB, ref="other")
    assert (store.audience_size(None), store.audience_size("weekly")) == (2, 1)
    store.unsubscribe(ANN, "weekly")
    assert (store.audience_size(None), store.audience_size("weekly")) == (2, 0)
