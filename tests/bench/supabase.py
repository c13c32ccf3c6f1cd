"""What the Supabase store costs: the same sender and a transport that accepts all, over each way to a store.

Postgres keeps every commit here as SQLite does (fsync on), so that the ratios are fair; on Supabase a network
lies in between, and a step for 50 messages costs its round trip once. `python -m tests.bench.supabase [n]`.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psycopg

from mailout.adapters.journals.files import FileJournals
from mailout.adapters.sqlite import SqliteStore
from mailout.adapters.supabase import SupabaseStore
from mailout.audience.port import SubscriberRow
from mailout.clock import SystemClock
from mailout.delivery.options import Ended, SenderOptions
from mailout.delivery.port import Mail
from mailout.delivery.protocol import Claimed, Outcome, OutcomeKind, Step, StepReply, Timing
from mailout.delivery.sender import Sender
from mailout.queue.limits import Limits, buckets
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


class Timed:
    """A store whose steps are timed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def step(self, step: Step) -> StepReply:
        started = time.perf_counter()
        try:
            return self._store.step(step)
        finally:
            self.seconds += time.perf_counter() - started


def per_second(store: Store, folder: Path, recipients: int) -> tuple[float, float]:
    """Messages a second: of the whole sender, and of the time that its steps took."""
    people = [f"reader-{number:07}@example.org" for number in range(recipients)]
    store.import_subscribers([SubscriberRow(email, email) for email in people])
    id = enqueue(store)
    freeze(store, id)
    store.start(id, "bench")
    timed = Timed(store)
    options = SenderOptions(
        worker="bench",
        rate=0.0,
        timing=Timing.of(120),
        batch_size=BATCH,
        buckets=lambda now: buckets(Limits(UTC), now),
    )
    sender = Sender(timed, AcceptAll(), _mail, FileJournals(folder / "journal"), SystemClock(), options)  # type: ignore[arg-type]
    started = time.perf_counter()
    report = sender.run(id)
    took = time.perf_counter() - started
    if report.ended is not Ended.DONE:
        raise RuntimeError(report)
    return recipients / took, recipients / timed.seconds


def _mail(row: Claimed) -> Mail:
    return Mail(row.attempt, row.mailout_id, row.email, "news@example.org", "News", None, LETTER, {}, None)


def run(recipients: int = 10_000) -> dict[str, Any]:
    found: dict[str, Any] = {}
    whole: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        for way, make in (("sqlite", _sqlite), ("postgres", _postgres), ("http", _http)):
            folder = Path(name) / way
            folder.mkdir()
            with make(folder) as store:
                if store is None:
                    continue  # Node is not here
                whole[way], steps = per_second(store, folder, recipients)
            found[f"{way}: messages a second"] = round(whole[way])
            found[f"{way}: messages a second of step time"] = round(steps)
    for way in whole.keys() - {"sqlite"}:
        found[f"{way} to sqlite"] = round(whole[way] / whole["sqlite"], 2)
    return found


@contextmanager
def _sqlite(folder: Path) -> Iterator[Store]:
    store = SqliteStore(folder / "mailout.db", SystemClock())
    yield store
    store.close()


@contextmanager
def _postgres(folder: Path) -> Iterator[Store]:
    _keep_commits()
    address = database("bench")
    migrate(address)
    store = SupabaseStore(PostgresRpc(address))
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


def _keep_commits() -> None:
    with psycopg.connect(server(), autocommit=True) as admin:
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            admin.execute(f"alter system reset {setting}")  # type: ignore[call-overload]
        admin.execute("select pg_reload_conf()")


if __name__ == "__main__":
    print(json.dumps(run(*(int(argument) for argument in sys.argv[1:2])), indent=2))
