"""Articles: 100,000 people over 200 slices, counted, put together and written into the outbox.

Memory is a whole process's peak, so each store is measured in a process of its own; on Postgres it is the
process that assembles, not the database's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mailout.adapters.sqlite import SqliteStore
from mailout.adapters.supabase import SupabaseStore
from mailout.base.clock import SystemClock
from mailout.kinds.articles import article_rows
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content.slices import Slice
from mailout.store import Store
from tests.bench.memory import peak_mb
from tests.clocks import FakeClock
from tests.contract.articles import OHIO, US, engine_on, order, part
from tests.contract.postgres import PostgresRpc, database, migrate

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


def measure(kind: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        store = _open(kind, Path(folder))
        store.import_slices(slices())
        for start in range(0, PEOPLE, 20_000):
            store.import_subscribers(list(people(range(start, start + 20_000))))
        engine = engine_on(store, FakeClock(), Path(folder))
        began, cpu = time.perf_counter(), time.process_time()
        mailout = engine.intake.articles.enqueue(order())
        if mailout is None:
            raise AssertionError("nobody is in the audience")
        engine.sending.freeze(mailout.id)
        found = {
            "seconds": time.perf_counter() - began,
            "cpu_seconds": time.process_time() - cpu,
            "memory_mb": peak_mb(),
            "variants": len(article_rows.article_batch(store, mailout.id).contents),
        }
        if store.mailout(mailout.id).ledger.recipients != PEOPLE:
            raise AssertionError("somebody is missing")
        store.close()
        return found


def _open(kind: str, folder: Path) -> Store:
    if kind == "sqlite":
        return SqliteStore(folder / "mailout.db", SystemClock())
    address = database("bench_articles")
    migrate(address)
    return SupabaseStore.over(PostgresRpc(address))


def run() -> dict[str, Any]:
    return _in_a_process("sqlite") | {
        f"postgres_{name}": value for name, value in _in_a_process("postgres").items()
    }


def _in_a_process(kind: str) -> dict[str, Any]:
    command = [sys.executable, "-m", __name__, kind]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )
    return found


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
