"""Refused webhooks, for the dashboard: counted by reason and written down every few seconds at most."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

from starlette.concurrency import run_in_threadpool

from gateway.refusals import shown
from mailout.base.errors import StoreError
from mailout.insight.history.port import REFUSALS_KEPT, Noticed

log = logging.getLogger("mailout.gateway")

PATHS = ("/ses-events", "/webhooks/notion", "/send-mailout", "/articles/send")
WRITE_EVERY = 2.0


class RefusedWebhooks:
    """However many come, one write at a time, of so many kinds at most."""

    def __init__(self, store: Noticed, *, every: float = WRITE_EVERY) -> None:
        self._store = store
        self._every = every
        self._counts: Counter[tuple[str, str]] = Counter()
        self._writing: asyncio.Task[None] | None = None

    def add(self, path: str, why: str) -> None:
        if path not in PATHS:
            return
        kind = (path, shown(why, 500))
        if kind in self._counts or len(self._counts) < REFUSALS_KEPT:
            self._counts[kind] += 1
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write_soon())

    async def close(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
        await self._write()

    async def _write_soon(self) -> None:
        await asyncio.sleep(self._every)
        await self._write()

    async def _write(self) -> None:
        counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            await run_in_threadpool(self._store.keep_refusals, counts)
        except StoreError as error:
            log.warning("%d refused requests are not shown on the dashboard: %s", counts.total(), error)
