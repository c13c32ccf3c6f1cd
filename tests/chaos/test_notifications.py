"""A worker that dies, and two workers on one file: nobody is notified twice, nobody is forgotten."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.senders import PATIENCE, PROJECT, end, wait_for
from tests.clocks import FakeClock
from tests.contract.stores import FACTORIES, StoreFactory
from tests.producer.database import ProducerDatabase

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

    def start(self, rate: int) -> subprocess.Popen[str]:
        arguments = [self._address, str(self.producer.path), str(self._home), str(rate)]
        return subprocess.Popen(
            [sys.executable, "-m", "tests.producer.process", *arguments],
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def accepted(self) -> Counter[str]:
        files = (self._home / "outbox").glob("*/[!.]*.eml")
        return Counter(path.name.split("--")[0] for path in files)

    def finish(self) -> None:
        self.producer.free_locks()
        process = self.start(0)
        output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, output


def test_killed_again_and_again(factory: StoreFactory, tmp_path: Path) -> None:
    chance = random.Random(20261115)
    place = Place(factory, tmp_path)
    place.producer.many(f"p{n:04}@example.org" for n in range(PEOPLE))
    kills = 0
    while kills < KILLS:
        process = place.start(rate=150)
        target = place.accepted().total() + chance.randint(1, PEOPLE // KILLS - 3)
        alive = wait_for(lambda: place.accepted().total() >= target, process)  # noqa: B023 (asked at once)
        time.sleep(chance.uniform(0, 0.03))
        kills += alive
        end(process, signal.SIGKILL)
        if not alive:
            break
        place.producer.free_locks()
    place.finish()
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
    both = [place.start(rate=100), place.start(rate=100)]
    for process in both:
        output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, output
    rows = place.producer.rows()
    assert {(row["fanout_status"], row["fanout_attempts"]) for row in rows} == {("sent", 1)}
    assert set(place.accepted().values()) == {1}
    assert place.accepted().total() == 60
