"""Whoever writes an article's audience into the outbox dies at any moment: nobody is lost, nobody doubled."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest

from mailout.letters.audience.port import SubscriberRow
from mailout.outbox.delivery import outbox_rows
from mailout.store import Store
from tests.chaos import freezing
from tests.chaos.forks import FORKS
from tests.chaos.places import PATIENCE
from tests.clocks import FakeClock
from tests.contract.articles import ARLINGTON, FRANKLIN, OHIO, SLICES, US, order
from tests.contract.stores import FACTORIES, StoreFactory

KILLS, PEOPLE = 5, 90
MOST_BATCHES = 20
PLACES = [
    (US,),
    (US, OHIO),
    (US, OHIO, FRANKLIN),
    (US, OHIO, FRANKLIN, ARLINGTON),
    ("ocd-division/country:mx",),
]


@pytest.fixture(params=list(FACTORIES))
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    made: StoreFactory = FACTORIES[request.param](tmp_path)
    made.make(FakeClock())
    yield made.address()
    made.close()


def frozen(store: Store, id: str) -> bool:
    return store.mailout(id).frozen_at is not None


def kill_one(store: Store, address: str, home: Path, id: str, chance: random.Random) -> bool:
    """Whether it was killed, and had not come to its end before."""
    process = FORKS.Process(target=freezing.freeze, args=(address, home, id))
    process.start()
    target = store.mailout(id).ledger.recipients + chance.randint(1, PEOPLE // KILLS)
    until = time.monotonic() + PATIENCE
    while process.is_alive() and store.mailout(id).ledger.recipients < target:
        assert time.monotonic() < until, "it never came to that"
    time.sleep(chance.uniform(0, 2 * freezing.BETWEEN))
    process.kill()
    process.join(PATIENCE)
    return process.exitcode == -9 and not frozen(store, id)


def test_killed_again_and_again_while_the_audience_is_written(address: str, tmp_path: Path) -> None:
    chance = random.Random(20261115)
    people = {f"p{n:03}@example.org": PLACES[n % len(PLACES)] for n in range(PEOPLE)}
    engine = freezing.open_engine(address, tmp_path)
    with closing(engine.store) as store:
        store.import_slices(SLICES)
        store.import_subscribers([SubscriberRow(email, email, ocd_ids=at) for email, at in people.items()])
        batches: list[str] = []
        kills = 0
        while kills < KILLS and len(batches) < MOST_BATCHES:
            if not batches or frozen(store, batches[-1]):
                mailout = engine.intake.articles.enqueue(order(send_batch_id=str(UUID(int=len(batches)))))
                assert mailout is not None
                batches.append(mailout.id)
            kills += kill_one(store, address, tmp_path, batches[-1], chance)
        assert kills == KILLS
        reached = sorted(email for email, at in people.items() if US in at)
        for id in batches:
            engine.sending.freeze(id)
            rows = outbox_rows.messages(store, id, limit=10 * PEOPLE)
            assert sorted(row["email"] for row in rows) == reached
            variants = {(people[row["email"]], row["content_id"]) for row in rows}
            assert len(variants) == len({content for _, content in variants}) == 4
            ledger = store.mailout(id).ledger
            assert (ledger.recipients, ledger.pending, ledger.balances) == (len(reached), len(reached), True)
