"""Notifications a second through the folder transport on one core, whether a long queue slows them, and how
long the producer has to wait for our transactions."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from mailout.app import notification_wiring
from tests.bench.homes import engine_with
from tests.producer.database import ProducerDatabase

SHORT, LONG, MEASURED = 1_000, 100_000, 1_000


def run(rounds: int = 5, long: int = LONG) -> dict[str, Any]:
    transactions: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        pairs = [
            (
                _measured(Path(folder) / f"short-{n}", SHORT, transactions),
                _measured(Path(folder) / f"long-{n}", long, transactions),
            )
            for n in range(rounds)
        ]
    transactions.sort()
    return {
        "a_second": [short for short, _ in pairs],
        "growth": [behind / short for short, behind in pairs],
        "transactions": len(transactions),
        "longest_ms": 1000 * transactions[-1],
        "p99_ms": 1000 * transactions[int(len(transactions) * 0.99)],
    }


def _measured(home: Path, rows: int, transactions: list[float]) -> float:
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
    producer_queue: Any = worker._producer
    producer_queue._db = _Timed(producer_queue._db, transactions)
    worker.round()  # imports, templates
    began = time.process_time()
    counts = worker.run()
    took = time.process_time() - began
    worker.close()
    engine.store.close()
    return (counts.sent - 100) / took


class _Timed:
    """A connection that notes for how long each of its transactions keeps the producer from writing."""

    def __init__(self, connection: Any, found: list[float]) -> None:
        self._connection = connection
        self._found = found

    def __enter__(self) -> None:
        self._began = time.perf_counter()
        self._connection.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self._connection.__exit__(*raised)
        self._found.append(time.perf_counter() - self._began)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)
