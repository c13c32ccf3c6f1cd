"""A worker that dies, and two workers on one file: nobody is notified twice, nobody is forgotten."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from tests.chaos.forks import FORKS
from tests.chaos.senders import PATIENCE
from tests.clocks import FakeClock
from tests.contract.stores import FACTORIES, StoreFactory
from tests.producer.database import ProducerDatabase
from tests.producer.process import work

LONG = bool(os.environ.get("MAILOUT_LONG_CHAOS"))
"""`MAILOUT_LONG_CHAOS=1`: 30 kills over 500 notifications, instead of a few over 100."""
KILLS, PEOPLE = (30, 500) if LONG else (4, 100)


@pytest.fixture(params=list(FACTORIES))
def factory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreFactory]:
    made = FACTORIES[request.param](tmp_path)
    made.make(FakeClock())
    yield made
    made.close()


class Place:
    """A producer's database, a store of ours, and the folder that mails are written to."""

    def __init__(self, factory: StoreFactory, home: Path) -> None:
        self.producer = ProducerDatabase(home / "producer.db")
        self._home = home
        self._address = factory.address()

    def start(self, rate: int) -> BaseProcess:
        process = FORKS.Process(target=work, args=(self._address, self.producer.path, self._home, rate))
        process.start()
        return process

    def accepted(self) -> Counter[str]:
        files = (self._home / "outbox").glob("*/[!.]*.eml")
        return Counter(path.name.split("--")[0] for path in files)

    def finish(self, *processes: BaseProcess) -> None:
        for process in processes:
            process.join(PATIENCE)
        assert {process.exitcode for process in processes} == {0}

    def reaches(self, target: int, process: BaseProcess) -> bool:
        """Until so many were accepted; False if the process ended first."""
        until = time.monotonic() + PATIENCE
        while self.accepted().total() < target:
            if not process.is_alive():
                return False
            assert time.monotonic() < until, "it never came to that"
            time.sleep(0.005)
        return True


def test_killed_again_and_again(factory: StoreFactory, tmp_path: Path) -> None:
    chance = random.Random(20261115)
    place = Place(factory, tmp_path)
    place.producer.many(f"p{n:04}@example.org" for n in range(PEOPLE))
    kills = 0
    while kills < KILLS:
        process = place.start(rate=150)
        target = place.accepted().total() + chance.randint(1, PEOPLE // KILLS - 3)
        alive = place.reaches(target, process)
        time.sleep(chance.uniform(0, 0.03))
        kills += alive
        process.kill()
        process.join(PATIENCE)
        place.producer.free_locks()
        if not alive:
            break
    place.finish(place.start(rate=0))
    assert kills == KILLS
    accepted, rows = place.accepted(), place.producer.rows()
    assert max(accepted.values()) == 1
    assert len(rows) == PEOPLE
    assert {row["fanout_attempts"] for row in rows} == {1}
    assert {row["fanout_status"] for row in rows} <= {"sent", "failed"}
    failed = [row for row in rows if row["fanout_status"] == "failed"]
    assert all("outcome_unknown" in row["error"] for row in failed)
    assert len(failed) <= kills
    assert all(accepted[row["email"]] == 1 for row in rows if row["fanout_status"] == "sent")
    assert len(place.producer.events()) == PEOPLE


def test_two_workers_on_one_file(factory: StoreFactory, tmp_path: Path) -> None:
    place = Place(factory, tmp_path)
    place.producer.many(f"p{n:04}@example.org" for n in range(60))
    place.finish(place.start(rate=100), place.start(rate=100))
    rows = place.producer.rows()
    assert {(row["fanout_status"], row["fanout_attempts"]) for row in rows} == {("sent", 1)}
    assert set(place.accepted().values()) == {1}
    assert place.accepted().total() == 60
