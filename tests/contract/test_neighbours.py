"""A sender outlives its neighbour on the same machine: the dead one's journal says what never left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from mailout.adapters.journals.files import FileJournals
from mailout.outbox.delivery.options import Ended
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Outcome
from mailout.outbox.delivery.recovery import reap
from mailout.outbox.delivery.states import State
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.crashes import Machine, Provider, die_sending, new_mailout, people, send
from tests.contract.scenes import GRACE, assert_ledger, states
from tests.contract.stores import StoreFactory

COUNT = 40


@dataclass
class Beside(Provider):
    """In its first call, a neighbour begins, and dies."""

    store: Store | None = None
    id: str = ""
    neighbour: Provider | None = None
    folder: Path = Path()

    def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]:
        if not self.calls and self.store is not None and self.neighbour is not None:
            die_sending(self.store, self.neighbour, Machine(self.folder), self.id)
        return super().send(mails)


@pytest.mark.parametrize("max_batch", [1, 5], ids=["single", "bulk"])
def test_a_sender_that_is_left_alone_reads_its_neighbours_journal(
    store: Store, folder: Path, max_batch: int
) -> None:
    """97 were unknown of whom 95 had never been called: whoever then settles them as sent loses 95 people."""
    id = new_mailout(store, COUNT)
    dying = Provider(max_batch, dies_at=2)
    survivor = Beside(max_batch, store=store, id=id, neighbour=dying, folder=folder)
    report = send(store, survivor, Machine(folder), id, seconds=600)
    assert report.ended is Ended.DONE
    assert survivor.accepted + dying.accepted == dict.fromkeys(people(COUNT), 1)
    assert Counter(states(store, id).values()) == {State.SENT: COUNT - max_batch, State.UNKNOWN: max_batch}
    assert_ledger(store, id)


def test_whoever_reaps_reads_the_journals_first(store: Store, factory: StoreFactory, folder: Path) -> None:
    """The queue and `reconcile` reap as well, long after the lease has run out."""
    id, dying = new_mailout(store, COUNT), Provider(dies_at=4)
    die_sending(store, dying, Machine(folder), id)
    factory.set_now(NOON + 3600)
    assert reap(store, FileJournals(folder), GRACE) == 0
    found = Counter(states(store, id).values())
    assert (found[State.UNKNOWN], found[State.SENT]) == (1, 3)
    assert found[State.PENDING] == COUNT - 4


def test_what_was_reaped_without_its_journal_is_set_right_by_it(
    store: Store, factory: StoreFactory, folder: Path
) -> None:
    """Another machine was faster to give it up."""
    id, dying = new_mailout(store, COUNT), Provider(dies_at=4)
    die_sending(store, dying, Machine(folder), id)
    factory.set_now(NOON + 3600)
    assert store.reap(GRACE) > 1
    reap(store, FileJournals(folder), GRACE)
    assert Counter(states(store, id).values())[State.UNKNOWN] == 1
    assert_ledger(store, id)
