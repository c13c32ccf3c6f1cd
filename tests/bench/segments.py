"""A segment over a million people: counted, and frozen beside a letter to the same people without one."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from mailout.adapters.sqlite import SqliteStore
from mailout.adapters.supabase import SupabaseStore
from mailout.base.clock import SystemClock
from mailout.outbox.queue import segment_names
from mailout.store import Store
from tests.bench.supabase import keep_commits
from tests.contract.postgres import PostgresRpc, database, migrate
from tests.contract.scenes import enqueue, freeze

PEOPLE = """INSERT INTO subscribers (id, email, email_norm, attributes, created_at)
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
SELECT i, printf('reader-%08d@example.org', i), printf('reader-%08d@example.org', i),
       json_object('name', 'Reader ' || i, 'city', 'City ' || (i % 500), 'age', '' || (i % 90)), 0 FROM n"""
PEOPLE_PG = """insert into subscribers (email, attributes, created_at)
select 'reader-' || lpad(i::text, 8, '0') || '@example.org',
       jsonb_build_object('name', 'Reader ' || i, 'city', 'City ' || (i %% 500), 'age', '' || (i %% 90)),
       to_timestamp(0)
from generate_series(0, %s - 1) i"""
FEW = 'city = "City 7" and age < 40'
ALL = "has city and age < 100"


def run(rows: int = 1_000_000) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, open_store in (("sqlite", partial(_sqlite, Path(folder))), ("postgres", _postgres)):
            store = open_store(rows)
            found |= {f"{name}_{key}": value for key, value in _measured(store, rows).items()}
            store.close()
    return found


def _measured(store: Store, rows: int) -> dict[str, Any]:
    few, _ = segment_names.save(store, "few", FEW)
    segment_names.save(store, "all", ALL)
    counting = []
    for _ in range(3):
        began = time.perf_counter()
        if not 0 < store.audience_size(None, few.tree) < rows / 100:
            raise AssertionError("not these few")
        counting.append(time.perf_counter() - began)
    # In both orders: every letter makes the outbox larger for the next.
    _freezing(store, "to warm up", None, rows)
    took = [
        _freezing(store, f"letter {n}", segment, rows) for n, segment in enumerate([None, "all", "all", None])
    ]
    return {"count": counting, "freeze": (took[1] + took[2]) / (took[0] + took[3])}


def _freezing(store: Store, ref: str, segment: str | None, rows: int) -> float:
    id = enqueue(store, ref, segment=segment)
    began = time.perf_counter()
    if freeze(store, id) != rows:
        raise AssertionError("not everybody is in it")
    return time.perf_counter() - began


def _sqlite(place: Path, people: int) -> Store:
    store = SqliteStore(place / "mailout.db", SystemClock())
    with store.db.write() as tx:
        tx.execute(PEOPLE, (people,))
    return store


def _postgres(people: int) -> Store:
    keep_commits()
    address = database("bench_segments")
    migrate(address)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(PEOPLE_PG, (people,))
        connection.execute("vacuum analyze subscribers")
    return SupabaseStore.over(PostgresRpc(address))
