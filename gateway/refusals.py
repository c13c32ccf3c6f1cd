"""What the gateway refuses: a line in the log each, and no more of them than a disk and a reader can take;
and refused webhooks, for the dashboard."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from mailout.base.errors import StoreError
from mailout.insight.history.port import REFUSALS_KEPT, History

log = logging.getLogger("mailout.gateway")

REFUSALS_WINDOW_SECONDS = 60.0
LINES_PER_MINUTE = 60
"""Lines of requests that were refused, a minute: a scanner makes thousands."""
WEBHOOK_PATHS = ("/ses-events", "/webhooks/notion", "/send-mailout", "/articles/send")
WRITE_REFUSALS_SECONDS = 2.0


@dataclass
class _RefusalWindow:
    ends: float
    lines: int = 0
    left_out: int = 0


class RefusalLog:
    """What is left out of one minute is counted in the next line of its kind."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._minutes: dict[str, _RefusalWindow] = {}

    def request(self, method: str, path: str, code: int, why: str) -> None:
        level = logging.ERROR if code >= 500 else logging.WARNING
        self._write(
            "requests", LINES_PER_MINUTE, f"{method} {shown(path)} refused ({code}): {shown(why, 500)}", level
        )

    def wrong_token(self, site: str, path: str) -> None:
        self._write("wrong tokens", 1, f"A wrong token or none, from {site}, for {shown(path)}")

    def handshake(self, line: str) -> None:
        self._write("handshakes", 1, line)

    def connection(self, site: str, why: str) -> None:
        self._write(why, 1, f"Connection from {site} closed: {why}")

    def _write(self, kind: str, most: int, line: str, level: int = logging.WARNING) -> None:
        now = self._monotonic()
        minute = self._minutes.get(kind)
        if minute is None or now >= minute.ends:
            more = f" ({minute.left_out} more like it before)" if minute and minute.left_out else ""
            minute = self._minutes[kind] = _RefusalWindow(now + REFUSALS_WINDOW_SECONDS)
            line += more
        if minute.lines < most:
            minute.lines += 1
            log.log(level, "%s", line)
        else:
            minute.left_out += 1


class RefusedWebhooks:
    """For the dashboard: counted by reason. However many come, one write every few seconds, of so many kinds
    at most."""

    def __init__(self, store: History, *, every: float = WRITE_REFUSALS_SECONDS) -> None:
        self._store = store
        self._every = every
        self._counts: Counter[tuple[str, str]] = Counter()
        self._writing: asyncio.Task[None] | None = None

    def add(self, path: str, why: str) -> None:
        if path not in WEBHOOK_PATHS:
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


def shown(text: str, most: int = 200) -> str:
    """A stranger chose it, or words in it: nothing in it may look like a line of ours."""
    short = text if len(text) <= most else f"{text[:most]}…"
    return short if short.isprintable() else ascii(short)
