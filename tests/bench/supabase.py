"""What the Supabase store costs: the same sender and a transport that accepts all, over each way to a store.

Postgres keeps every commit here as SQLite does (fsync on), so that the ratios are fair; on Supabase a network
lies in between, and a step for 50 messages costs its round trip once.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psycopg

from mailout.adapters.journals.files import FileJournals
from mailout.adapters.sqlite import SqliteStore
from mailout.adapters.supabase import SupabaseStore
from mailout.base.clock import SystemClock
from mailout.letters.audience.port import SubscriberRow
from mailout.outbox.delivery.options import Ended, SenderOptions
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Claimed, Outcome, OutcomeKind, Timing
from mailout.outbox.delivery.sender import Sender
from mailout.outbox.queue.limits import Limits, buckets
from mailout.store import Store
from tests.contract.postgres import PostgresRpc, database, empty, migrate, server
from tests.contract.scenes import LETTER, enqueue, freeze
from tests.e2e.supabase_lite.server import SECRET, running

BATCH = 50
UTC = ZoneInfo("UTC")


class AcceptAll:
    """Fulfils `Transport`, at no cost."""

    name = scope = "bench"
    max_batch = BATCH

    def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]:
        return [Outcome(OutcomeKind.SENT, provider_message_id=f"m-{mail.attempt.id}") for mail in mails]

    def allowance(self) -> None:
        return None

    def close(self) -> None:
        return None


def per_second(store: Store, folder: Path, recipients: int, ref: str) -> float:
    """Messages a second of one mailout."""
    people = [f"reader-{number:07}@example.org" for number in range(recipients)]
    store.import_subscribers([SubscriberRow(email, email) for email in people])
    id = enqueue(store, ref)
    freeze(store, id)
    store.start(id, "bench")
    options = SenderOptions(
        worker="bench",
        rate=0.0,
        timing=Timing.of(120),
        batch_size=BATCH,
        buckets=lambda now: buckets(Limits(UTC), now),
    )
    sender = Sender(store, AcceptAll(), mail_for, FileJournals(folder / "journal"), SystemClock(), options)
    started = time.perf_counter()
    report = sender.run(id)
    took = time.perf_counter() - started
    if report.ended is not Ended.DONE:
        raise RuntimeError(report)
    return recipients / took


def mail_for(row: Claimed) -> Mail:
    return Mail(row.attempt, row.mailout_id, row.email, "news@example.org", "News", None, LETTER, {}, None)


def run(recipients: int = 4_000, rounds: int = 5) -> dict[str, Any]:
    """In turns; the first is to warm up."""
    ratios: dict[str, list[float]] = {"postgres_to_sqlite": [], "http_to_sqlite": []}
    with tempfile.TemporaryDirectory() as name, ExitStack() as opened:
        stores: dict[str, Store | None] = {}
        for way, make in (("sqlite", _sqlite), ("postgres", _postgres), ("http", _http)):
            (Path(name) / way).mkdir()
            stores[way] = opened.enter_context(make(Path(name) / way))
        for number in range(rounds + 1):
            speed = {
                way: per_second(store, Path(name) / way, recipients, f"round {number}")
                for way, store in stores.items()
                if store is not None
            }
            for way in speed.keys() - {"sqlite"} if number else ():
                ratios[f"{way}_to_sqlite"].append(speed[way] / speed["sqlite"])
    return {key: values for key, values in ratios.items() if values}


@contextmanager
def _sqlite(folder: Path) -> Iterator[Store]:
    store = SqliteStore(folder / "mailout.db", SystemClock())
    yield store
    store.close()


@contextmanager
def _postgres(folder: Path) -> Iterator[Store]:
    keep_commits()
    address = database("bench")
    migrate(address)
    store = SupabaseStore.over(PostgresRpc(address))
    yield store
    store.close()


@contextmanager
def _http(folder: Path) -> Iterator[Store | None]:
    if shutil.which("npm") is None or shutil.which("node") is None:
        yield None
        return
    with running(folder) as lite:
        empty(lite.database)
        store = SupabaseStore.connect(lite.url, SECRET)
        yield store
        store.close()


def keep_commits() -> None:
    with psycopg.connect(server(), autocommit=True) as admin:
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            admin.execute(f"alter system reset {setting}")
        admin.execute("select pg_reload_conf()")
