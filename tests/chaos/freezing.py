"""Freezing an article's audience in a process of its own, to be killed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mailout.app.engine import Engine
from mailout.base.clock import SystemClock
from mailout.kinds.articles import articles
from mailout.outbox.queue.port import Recipient
from mailout.store import Store
from tests.contract.articles import engine_on
from tests.contract.stores import open_address

CHUNK = 4
BETWEEN = 0.004
"""Seconds between two chunks: somebody has to have the time to kill it."""


def open_engine(address: str, home: Path) -> Engine:
    return engine_on(open_address(address), SystemClock(), home)  # type: ignore[arg-type]


def freeze(address: str, home: Path, id: str) -> None:
    articles.CHUNK = CHUNK
    engine = open_engine(address, home)
    engine.store.freeze_recipients = _slowed(engine.store)  # type: ignore[method-assign]
    engine.sending.freeze(id)


def _slowed(store: Store) -> Any:
    freeze_recipients = store.freeze_recipients

    def slow(id: str, recipients: Sequence[Recipient], up_to: str | None) -> int:
        time.sleep(BETWEEN)
        return freeze_recipients(id, recipients, up_to)

    return slow
