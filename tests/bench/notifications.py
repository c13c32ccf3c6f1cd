"""Notifications a second through the folder transport on one core, whether a long queue slows them, and how
long the producer has to wait for our transactions."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mailout import notification_wiring
from mailout.intake.notifications import NotificationWorker
from tests.bench.homes import engine_with
from tests.producer.database import ProducerDatabase

SHORT, LONG, MEASURED = 1_000, 100_000, 1_000


@dataclass
class Measured:
    per_second: float  # of CPU
    transactions: list[float] = field(default_factory=list)  # seconds each, on the producer's database

    @property
    def longest_ms(self) -> float:
        return round(1000 * max(self.transactions), 1)

    @property
    def p99_ms(self) -> float:
        return round(1000 * sorted(self.transactions)[int(len(self.transactions) * 0.99)], 1)


def run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        first = measure(Path(folder) / "short", SHORT)
        later = measure(Path(folder) / "long", LONG)
    return {
        "notifications a second of CPU": round(first.per_second),
        f"the same behind {LONG:,} that are done": round(later.per_second),
        "ratio (flat is 1)": round(later.per_second / first.per_second, 2),
        "transactions on the producer's database": len(first.transactions) + len(later.transactions),
        "the longest, ms": max(first.longest_ms, later.longest_ms),
        "p99, ms": max(first.p99_ms, later.p99_ms),
    }


def measure(home: Path, rows: int) -> Measured:
    """The last thousand of so many rows, the others having been sent."""
    settings = {"NOTIFY_SOURCE": "bench", "NOTIFY_BASE_URL": "https://app.example.org"}
    engine, _ = engine_with(home, 0, **settings)
    producer = ProducerDatabase(home / "producer.db")
    producer.many(f"reader-{n:06}@example.org" for n in range(rows))
    producer.sql(
        "UPDATE open_event_notifications SET fanout_status = 'sent' WHERE notification_id <= ?",
        rows - MEASURED,
    )
    worker = notification_wiring.notification_worker(engine, producer.path, in_place=True)
    transactions = _timed(worker)
    worker.round()  # imports, templates
    began = time.process_time()
    counts = worker.run()
    took = time.process_time() - began
    worker.close()
    engine.store.close()
    return Measured((counts.sent - 100) / took, transactions)


def _timed(worker: NotificationWorker) -> list[float]:
    """How long each transaction takes, as the producer would have to wait for it."""
    producer: Any = worker._producer
    transaction, found = producer._transaction, []

    @contextmanager
    def timed() -> Iterator[None]:
        began = time.perf_counter()
        with transaction():
            yield
        found.append(time.perf_counter() - began)

    producer._transaction = timed
    return found
