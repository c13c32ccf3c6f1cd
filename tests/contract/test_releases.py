"""Upgrading from every version that was released: nobody lost, nobody mailed twice, what waits goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mailout.base.ids import mailout_id
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.port import Undone
from mailout.outbox.delivery.states import State
from mailout.outbox.queue import queue_rows, segment_names
from mailout.readers.port import Confirmed
from mailout.store import Store
from tests.contract.releases import FOLDER, PEOPLE, STRANGER, load
from tests.contract.scenes import Sender, assert_ledger, result, states
from tests.contract.test_imports import CYN, FIRST
from tests.contract.test_join import ANN, WORDING, confirm, lists_of

MAIN = mailout_id("main")


@pytest.fixture(params=sorted(FOLDER.glob("*.sql")), ids=lambda path: path.stem)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    store = load(request.param, tmp_path)
    yield store
    store.close()


def test_people_letters_and_messages_are_as_they_were(store: Store) -> None:
    store.check()
    assert states(store, MAIN) == {email: state for state, email in PEOPLE.items()}
    assert_ledger(store, MAIN)
    assert {one.status.value for one in queue_rows.mailouts(store)} == {
        "PENDING",
        "PROCESSING",
        "COMPLETED",
        "CANCELLED",
    }
    assert subscriber_rows.subscriber_counts(store) == {"active": 9, "unsubscribed": 2, "bounced": 1}


def test_what_waited_is_sent_and_what_was_sent_is_not_sent_again(store: Store) -> None:
    sender = Sender(store, MAIN)
    (row,) = sender.begin(10)
    assert row.email == PEOPLE[State.PENDING]
    sender.step(results=[result(row)])
    assert states(store, MAIN)[PEOPLE[State.PENDING]] is State.SENT
    assert_ledger(store, MAIN)


def test_what_readers_and_their_writer_have_decided_stays(store: Store) -> None:
    assert lists_of(store, ANN) == {"general": False, "news": True}
    (agreed,) = subscriber_rows.consents(store, ANN)
    assert (agreed["list_key"], agreed["wording"]) == ("news", WORDING)
    assert confirm(store, ANN) is Confirmed.KNOWN
    assert confirm(store, STRANGER) is Confirmed.JOINED
    newcomers = segment_names.segment(store, "newcomers").tree
    assert list(store.audience_sample(None, newcomers, 10)) == [ANN, STRANGER]
    assert subscriber_rows.subscriber(store, CYN)["status"] == "active"
    assert store.undo_import(FIRST) == Undone(people=1, lists=0, kept=0)
