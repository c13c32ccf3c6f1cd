"""Notifications a second through the folder transport on one core, and whether a long queue slows them."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from mailout import notification_wiring
from tests.bench.homes import engine_with
from tests.producer.database import ProducerDatabase

SHORT, LONG, MEASURED = 1_000, 100_000, 1_000


def run(rounds: int = 5, long: int = LONG) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        pairs = [
            (_measured(Path(folder) / f"short-{n}", SHORT), _measured(Path(folder) / f"long-{n}", long))
            for n in range(rounds)
        ]
    return {
        "a_second": [short for short, _ in pairs],
        "growth": [behind / short for short, behind in pairs],
    }


def _measured(home: Path, rows: int) -> float:
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
    worker.round()  # imports, templates
    began = time.process_time()
    counts = worker.run()
    worker.close()
    engine.store.close()
    return (counts.sent - 100) / (time.process_time() - began)
