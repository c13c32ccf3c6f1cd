"""A million messages: what freezing and sending them cost, beside ten or twenty thousand.

Memory is a whole process's peak, so senders run in processes of their own.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from mailout.adapters.journals.files import FileJournals
from mailout.adapters.sqlite import SqliteStore
from mailout.adapters.supabase import SupabaseStore
from mailout.base.clock import SystemClock
from mailout.outbox.delivery.options import SenderOptions
from mailout.outbox.delivery.protocol import Claimed, Ledger, Result, Timing
from mailout.outbox.delivery.sender import Sender
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.limits import Limits, buckets
from mailout.store import Store
from tests.bench.memory import peak_mb
from tests.bench.supabase import BATCH, UTC, AcceptAll, keep_commits, mail_for
from tests.contract.postgres import PostgresRpc, database, migrate
from tests.contract.scenes import enqueue, freeze

SMALL, MIDDLE, SENT = 10_000, 100_000, 20_000
ROUNDS, TURNS = 5, 3

PEOPLE = """INSERT INTO subscribers (id, email, email_norm, created_at)
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
SELECT i, printf('reader-%08d@example.org', i), printf('reader-%08d@example.org', i), 0 FROM n"""
PEOPLE_PG = """insert into subscribers (email, created_at)
select 'reader-' || lpad(i::text, 8, '0') || '@example.org', 'epoch' from generate_series(0, %s - 1) i"""


def run(rows: int = 1_000_000) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        found = _growth("freeze", partial(_sqlite, place), rows)
        found |= _growth("postgres", _postgres, rows)
        found |= _senders(place, rows)
    return found


# ── freezing ──


def _growth(name: str, open_store: Any, rows: int) -> dict[str, Any]:
    """Seconds a recipient, as a multiple of what it costs among ten thousand. In turns, since a machine is
    faster at one time than at another."""
    small, middle, large = list[float](), list[float](), list[float]()
    for _ in range(TURNS):
        small += _freezing(open_store(SMALL), SMALL, ROUNDS)
        middle += _freezing(open_store(MIDDLE), MIDDLE, 1)
        large += _freezing(open_store(rows), rows, 1)
    base = statistics.median(small)
    return {
        f"{name}_growth_100k": [one / base for one in middle],
        f"{name}_growth": [one / base for one in large],
        f"{name}_seconds": [one * rows for one in large],
    }


def _freezing(store: Store, people: int, rounds: int) -> list[float]:
    """The first is to warm up where there are more than one."""
    took = []
    for number in range(rounds + (rounds > 1)):
        id = enqueue(store, f"letter {number}")
        began = time.perf_counter()
        if freeze(store, id) != people:
            raise AssertionError("not everybody is in it")
        took.append((time.perf_counter() - began) / people)
    store.close()
    return took[-rounds:]


def _sqlite(place: Path, people: int) -> SqliteStore:
    home = place / str(people)
    shutil.rmtree(home, ignore_errors=True)
    store = SqliteStore(home / "mailout.db", SystemClock())
    with store.db.write() as tx:
        tx.execute(PEOPLE, (people,))
    return store


def _postgres(people: int) -> SupabaseStore:
    keep_commits()
    address = database(f"bench_{people}")
    migrate(address)
    store = SupabaseStore.over(PostgresRpc(address))
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(PEOPLE_PG, (people,))
        while store.normalise_addresses():
            continue
        connection.execute("analyze subscribers")
    return store


# ── sending ──


class Enough:
    """Fulfils `Observer`: ends the sender after so many."""

    def __init__(self, most: int) -> None:
        self._left = most
        self.sender: Sender | None = None

    def recorded(self, results: Sequence[tuple[Claimed, Result]], ledger: Ledger | None) -> None:
        self._left -= len(results)
        if self._left <= 0 and self.sender is not None:
            self.sender.stop()


def _senders(place: Path, rows: int) -> dict[str, Any]:
    """In turns: the first twenty thousand of a million, and a mailout of twenty thousand."""
    store = _sqlite(place, SENT)
    ids = [enqueue(store, f"letter {number}") for number in range(ROUNDS)]
    for id in ids:
        freeze(store, id)
        store.start(id, "bench")
    store.close()
    store = SqliteStore(place / str(rows) / "mailout.db", SystemClock())
    (letter,) = [one.id for one in queue_rows.mailouts(store)]
    store.start(letter, "bench")
    store.close()
    pairs = [(_sender(place / str(rows), letter), _sender(place / str(SENT), id)) for id in ids]
    return {
        "sender_speed": [million["speed"] / few["speed"] for million, few in pairs],
        "sender_memory_mb": [million["peak_mb"] - few["peak_mb"] for million, few in pairs],
    }


def _sender(home: Path, id: str) -> dict[str, float]:
    command = [sys.executable, "-m", __spec__.name, str(home), id]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    measured: dict[str, float] = json.loads(ended.stdout)
    return measured


def _send(home: Path, id: str) -> None:
    store = SqliteStore(home / "mailout.db", SystemClock())
    before = store.mailout(id).ledger.sent
    options = SenderOptions(
        worker="bench",
        rate=0.0,
        timing=Timing.of(120),
        batch_size=BATCH,
        buckets=lambda now: buckets(Limits(UTC), now),
    )
    enough = Enough(SENT)
    sender = Sender(
        store, AcceptAll(), mail_for, FileJournals(home / "journal"), SystemClock(), options, [enough]
    )
    enough.sender = sender
    began = time.perf_counter()
    sender.run(id)
    took = time.perf_counter() - began
    sent = store.mailout(id).ledger.sent - before
    store.close()
    print(json.dumps({"speed": sent / took, "peak_mb": peak_mb()}))


if __name__ == "__main__":
    _send(Path(sys.argv[1]), sys.argv[2])
