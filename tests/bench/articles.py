"""Articles: 100,000 people over 200 slices, counted, put together and written into the outbox, on SQLite.

Memory is a whole process's peak, so it is measured in a process of its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mailout.adapters.sqlite import SqliteStore
from mailout.audience.port import SubscriberRow
from mailout.clock import SystemClock
from mailout.content.slices import Slice
from tests.clocks import FakeClock
from tests.contract.articles import OHIO, US, engine_on, order, part

PEOPLE, SLICES, COUNTIES = 100_000, 200, 88


def people(numbers: range) -> Iterator[SubscriberRow]:
    for n in numbers:
        email = f"reader{n:06}@example.org"
        county = f"{OHIO}/county:county_{n % COUNTIES}"
        places = (US, OHIO, county, f"{OHIO}/place:place_{n % 110}", f"{OHIO}/cd:{n % 15}")
        yield SubscriberRow(email, email, ocd_ids=places)


def slices() -> list[Slice]:
    made = [part(1, US, "The nation. " * 40, is_headline=True, title="The budget"), part(2, OHIO, "Ohio.")]
    for n in range(SLICES - 2):
        scope = f"{OHIO}/county:county_{n}" if n < COUNTIES else f"{OHIO}/place:place_{n - COUNTIES}"
        made.append(part(3 + n % 5, scope, f"What place {n} decided. " * 20, title=f"Place {n}"))
    return made


def measure() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "mailout.db", SystemClock())
        store.import_slices(slices())
        for start in range(0, PEOPLE, 20_000):
            store.import_subscribers(list(people(range(start, start + 20_000))))
        engine = engine_on(store, FakeClock(), Path(folder))
        began = time.process_time()
        mailout = engine.intake.articles.enqueue(order())
        if mailout is None:
            raise AssertionError("nobody is in the audience")
        engine.sending.freeze(mailout.id)
        took = time.process_time() - began
        found = {
            "cpu_seconds": took,
            "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        store.close()
        return found


def run() -> dict[str, Any]:
    ended = subprocess.run([sys.executable, "-m", __name__], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


if __name__ == "__main__":
    print(json.dumps(measure()))
