"""Freezing: who is written to is decided once, in order, and survives a crash half-way."""

from __future__ import annotations

from unicodedata import category

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailout.base.errors import NotFound
from mailout.base.ids import message_id
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.audience.subscriber_rows import Wanted
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.document import one_line
from mailout.letters.content.model import Content, clean
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.queue.mailout import Status
from mailout.outbox.queue.port import Recipient
from mailout.store import Store
from tests.clocks import NOON, FakeClock
from tests.contract.scenes import (
    NOWHERE,
    Sender,
    assert_ledger,
    enqueue,
    freeze,
    handed_mailout,
    mailout,
    subscribe,
)
from tests.contract.stores import StoreFactory

ANN, BOB, CAT, DAN = (f"{name}@example.org" for name in ("ann", "bob", "cat", "dan"))


def frozen(store: Store, id: str) -> list[str]:
    return [row["email"] for row in outbox_rows.messages(store, id)]


def test_the_audience_is_every_active_subscriber_in_the_order_of_addresses(store: Store) -> None:
    subscribe(store, CAT, ANN)
    subscribe(store, BOB, status="unsubscribed")
    subscribe(store, DAN, status="bounced")
    id = enqueue(store)
    assert freeze(store, id) == 2
    assert frozen(store, id) == [ANN, CAT]
    assert (store.mailout(id).ledger.recipients, store.mailout(id).ledger.pending) == (2, 2)
    assert store.mailout(id).frozen_at == NOON


def test_a_message_has_the_id_that_its_mailout_and_address_give_it(store: Store) -> None:
    """A replay meets itself, in Python and in SQL."""
    id = mailout(store, ANN, "bücher@xn--bcher-kva.example")
    assert {row["id"] for row in outbox_rows.messages(store, id)} == {
        message_id(id, row["email"]) for row in outbox_rows.messages(store, id)
    }


def test_a_list_reaches_those_who_are_still_on_it(store: Store, factory: StoreFactory) -> None:
    subscribe(store, ANN, BOB, lists=["weekly"])
    subscribe(store, CAT, lists=["daily"])
    subscribe(store, DAN)
    factory.raw("UPDATE subscriptions SET unsubscribed_at = ? WHERE email = ?", (NOON, BOB))
    id = enqueue(store, list_key="weekly")
    freeze(store, id)
    assert frozen(store, id) == [ANN]


def test_who_subscribes_while_it_is_written_is_not_in_it(store: Store, factory: StoreFactory) -> None:
    """Else the audience would depend on how quick the store is."""
    subscribe(store, ANN, CAT)
    id = enqueue(store)
    assert store.freeze_subscribers(id, chunk=1) == 1
    factory.set_now(NOON + 1)
    subscribe(store, BOB, DAN)
    freeze(store, id, chunk=1)
    assert frozen(store, id) == [ANN, CAT]


def test_a_crash_between_two_parts_costs_nobody_and_doubles_nobody(
    store: Store, factory: StoreFactory
) -> None:
    subscribe(store, ANN, BOB, CAT, DAN)
    id = enqueue(store)
    assert store.freeze_subscribers(id, chunk=3) == 3
    assert store.mailout(id).frozen_at is None
    assert_ledger(store, id)
    another = factory.open_again()
    assert freeze(another, id, chunk=3) == 1
    assert frozen(another, id) == [ANN, BOB, CAT, DAN]
    assert_ledger(another, id)


def test_a_replay_adds_nobody(store: Store) -> None:
    id = mailout(store, ANN)
    subscribe(store, BOB)
    assert store.freeze_subscribers(id) is None
    assert store.freeze_recipients(id, [Recipient(CAT)]) == 0
    assert frozen(store, id) == [ANN]


def test_an_empty_audience_is_frozen_too(store: Store) -> None:
    """A mailout to nobody completes; it does not hang."""
    id = enqueue(store)
    assert store.freeze_subscribers(id) is None
    store.start(id, "worker")
    assert store.complete(id).status is Status.COMPLETED


def test_a_mailout_cancelled_while_it_is_written_gets_no_more_messages(store: Store) -> None:
    """They would wait in it for ever, and its ledger would never settle."""
    subscribe(store, ANN, BOB)
    id = enqueue(store)
    store.freeze_subscribers(id, chunk=1)
    store.cancel(id)
    assert store.freeze_subscribers(id, chunk=1) is None
    other = enqueue(store, "other")
    store.cancel(other)
    assert store.freeze_recipients(other, [Recipient(ANN)]) == 0
    for cancelled in (id, other):
        assert store.mailout(cancelled).ledger.pending == 0
        assert_ledger(store, cancelled)


def test_an_audience_that_is_handed_in_keeps_what_it_says_of_each(store: Store) -> None:
    variant = keep_content(store, Content("Variant", "<p>B</p>", "B"))
    id = handed_mailout(
        store,
        Recipient(BOB, from_name="Shop", content_hash=variant, variables={"name": "Bob"}),
        Recipient(ANN),
        Recipient(ANN),
        is_test=True,
    )
    ann, bob = Sender(store, id).begin(5)
    assert (ann.email, bob.email) == (ANN, BOB)
    assert (ann.content_hash, bob.content_hash) == (store.mailout(id).content_hash, variant)
    assert (bob.from_name, bob.variables) == ("Shop", {"name": "Bob"})
    assert_ledger(store, id)


def test_no_audience_without_a_mailout(store: Store) -> None:
    with pytest.raises(NotFound):
        store.freeze_subscribers(NOWHERE)
    with pytest.raises(NotFound):
        store.freeze_recipients(NOWHERE, [Recipient(ANN)])


LOCAL = st.text("abcxyz019._+-", min_size=1, max_size=4)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(names=st.sets(LOCAL, max_size=12), chunk=st.integers(1, 5))
def test_in_parts_of_any_size_the_audience_is_the_same(
    factory: StoreFactory, names: set[str], chunk: int
) -> None:
    """The order is that of the bytes, on every store."""
    store = factory.make(FakeClock())
    emails = {f"{name}@example.org" for name in names}
    subscribe(store, *emails)
    id = enqueue(store)
    assert freeze(store, id, chunk=chunk) == len(emails)
    assert frozen(store, id) == sorted(emails)


def test_a_message_takes_along_the_attributes_that_its_content_uses_and_no_others(store: Store) -> None:
    known = {"first_name": "Ann", "city": "Porto", 'it\'s "odd".name': "x", "blank": " "}
    subscribe(store, ANN, attributes=known)
    subscribe(store, BOB)
    id = enqueue(store)
    wanted = ("first_name", 'it\'s "odd".name', "blank")
    while store.freeze_subscribers(id, attributes=wanted) is not None:
        continue
    store.start(id, "worker")
    claimed = Sender(store, id).begin(9)
    assert {row.email: row.variables for row in claimed} == {
        ANN: {"first_name": "Ann", 'it\'s "odd".name': "x", "blank": " "},
        BOB: {},
    }


def test_a_truth_value_is_a_word(store: Store) -> None:
    """Imports write text; a program that writes into the table may not."""
    store.import_subscribers([SubscriberRow(ANN, ANN)])
    store.edit_subscriber(ANN, {"vip": True, "paid": False})
    id = enqueue(store)
    while store.freeze_subscribers(id, attributes=("vip", "paid")) is not None:
        continue
    store.start(id, "worker")
    assert Sender(store, id).begin_one().variables == {"vip": "true", "paid": "false"}
    found = subscriber_rows.matching(store, Wanted(attribute="vip", value="True"))
    assert [one["email_norm"] for one in found] == [ANN]


def test_without_variables_a_row_stays_narrow(store: Store) -> None:
    subscribe(store, ANN, attributes={"first_name": "Ann"})
    id = enqueue(store)
    freeze(store, id)
    assert outbox_rows.messages(store, id)[0]["variables"] is None


def test_who_lacks_an_attribute_is_counted_with_three_examples(store: Store) -> None:
    subscribe(store, DAN, attributes={"city": "Porto"}, lists=["weekly"])
    subscribe(store, ANN, attributes={"city": " \t"}, lists=["weekly"])
    subscribe(store, BOB, CAT, "eve@example.org")
    subscribe(store, "gone@example.org", status="unsubscribed")
    everybody = store.lacking("city", None)
    assert (everybody.people, list(everybody.examples)) == (4, [ANN, BOB, CAT])
    assert (store.lacking("city", "weekly").people, store.lacking("city", "none").people) == (1, 0)
    assert list(store.lacking("city", "none").examples) == []
    assert store.lacking("x' or 1=1 --", None).people == 5


def test_who_has_no_value_is_who_a_letter_would_show_none_of(store: Store) -> None:
    """Else a mailout passes the check before it and is refused for these people one by one."""
    unseen = [chr(n) for n in (*range(1, 0xD800), *range(0xE000, 0xE003)) if category(chr(n))[0] in "ZC"]
    values = [*(one for one in unseen if category(one) != "Cn"), "a", "\u00a0 a", "\t\u2003\n"]
    rows = [
        SubscriberRow(f"n{n:04}@example.org", f"n{n:04}@example.org", attributes={"name": value})
        for n, value in enumerate(values)
    ]
    store.import_subscribers(rows)
    blank = [row.email for row in rows if not one_line(clean(str(row.attributes["name"])))]
    lacking = store.lacking("name", None)
    assert (lacking.people, list(lacking.examples)) == (len(blank), blank[:3])
    having = subscriber_rows.subscribers(store, attribute="name", limit=len(rows))
    assert [one["email_norm"] for one in having] == [row.email for row in rows if row.email not in blank]


def test_whoever_is_there_is_in_also_after_the_clock_has_gone_back(
    store: Store, factory: StoreFactory
) -> None:
    """A machine that starts with a wrong clock must not send to nobody and call it done."""
    subscribe(store, ANN, BOB)
    id = enqueue(store)
    factory.set_now(NOON - 7200)
    assert freeze(store, id) == 2
