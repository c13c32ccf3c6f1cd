"""Lists: `general` is everybody's, every other one needs its row. On every store."""

from __future__ import annotations

from typing import Any

import pytest

from mailout.letters.audience import subscriber_rows
from mailout.outbox.delivery.states import State
from mailout.store import Store
from tests.contract.scenes import Sender, enqueue, freeze, states, subscribe

ANN, BOB, CYD = "ann@example.org", "bob@example.org", "cyd@example.org"


@pytest.fixture(autouse=True)
def people(store: Store) -> None:
    subscribe(store, ANN)
    subscribe(store, BOB, lists=("general",))
    subscribe(store, CYD, lists=("events",))


def audience(store: Store, **fields: Any) -> set[str]:
    id = enqueue(store, **fields)
    freeze(store, id)
    return set(states(store, id))


@pytest.mark.parametrize("list_key", [None, "general"])
def test_everybody_is_on_general_whether_they_have_a_row_or_not(store: Store, list_key: str | None) -> None:
    assert store.audience_size(list_key) == 3
    assert subscriber_rows.anybody_on(store, "general")
    assert audience(store, list_key=list_key) == {ANN, BOB, CYD}


@pytest.mark.parametrize("list_key", [None, "general"])
def test_who_has_left_general_gets_no_mailout_without_a_list_either(
    store: Store, list_key: str | None
) -> None:
    store.unsubscribe(ANN, "general")
    store.unsubscribe(BOB, "general")
    assert store.audience_size(list_key) == 1
    assert audience(store, list_key=list_key) == {CYD}


@pytest.mark.parametrize("list_key", [None, "general"])
def test_who_leaves_general_before_their_turn_is_passed_over(store: Store, list_key: str | None) -> None:
    id = enqueue(store, list_key=list_key)
    freeze(store, id)
    store.start(id, "worker")
    store.unsubscribe(BOB, "general")
    begun = {claimed.email for claimed in Sender(store, id).begin(3)}
    assert begun == {ANN, CYD}
    assert states(store, id)[BOB] is State.SUPPRESSED


def test_every_other_list_needs_its_row(store: Store) -> None:
    assert store.audience_size("events") == 1
    assert not subscriber_rows.anybody_on(store, "nobody-is-here")
    assert audience(store, list_key="events") == {CYD}


def test_who_has_left_general_stays_on_their_other_lists(store: Store) -> None:
    store.unsubscribe(CYD, "general")
    assert audience(store, list_key="events") == {CYD}


def test_whoever_comes_back_to_general_gets_mail_again(store: Store) -> None:
    store.unsubscribe(ANN, "general")
    assert store.resubscribe(ANN, "general")
    assert audience(store) == {ANN, BOB, CYD}


def test_nobody_is_on_general_when_all_have_left(store: Store) -> None:
    for person in (ANN, BOB, CYD):
        store.unsubscribe(person, "general")
    assert not subscriber_rows.anybody_on(store, "general")
