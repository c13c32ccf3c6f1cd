"""One poller for all listeners: it looks while somebody listens, and tells all of them what has changed."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from fastapi.sse import format_sse_event
from starlette.concurrency import run_in_threadpool

from mailout.base.errors import StoreError

log = logging.getLogger("mailout.gateway")

STREAM_POLL_SECONDS = 2.0
STILL_HERE_SECONDS = 15.0
"""A silent connection is cut by whatever stands between; a comment keeps it."""


class Stream:
    """Server-sent events. A listener that is slow gets the newest, not all."""

    def __init__(self, look: Callable[[], Mapping[str, Any]], *, every: float = STREAM_POLL_SECONDS) -> None:
        self._look = look
        self._every = every
        self._listeners: set[asyncio.Queue[str]] = set()
        self._poller: asyncio.Task[None] | None = None
        self._last: tuple[dict[str, Any], str] | None = None

    async def events(self) -> AsyncIterator[bytes]:
        mine: asyncio.Queue[str] = asyncio.Queue(maxsize=1)
        self._listeners.add(mine)
        if self._last is not None and self._poller is not None:
            mine.put_nowait(self._last[1])
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll())
        poller = self._poller
        try:
            while True:
                try:
                    text = await asyncio.wait_for(mine.get(), STILL_HERE_SECONDS)
                except TimeoutError:
                    if poller.done():  # something unforeseen: better an end with a reason than silence
                        poller.result()
                    yield format_sse_event(comment="still here")
                else:
                    yield format_sse_event(event="progress", data_str=text)
        finally:
            self._listeners.discard(mine)
            if not self._listeners and self._poller is not None:
                self._poller.cancel()
                self._poller = self._last = None

    async def _poll(self) -> None:
        while True:
            try:
                found = dict(await run_in_threadpool(self._look))
            except StoreError as error:
                log.warning("the stream waits for the store: %s", error)
            else:
                self._tell(found)
            await asyncio.sleep(self._every)

    def _tell(self, found: dict[str, Any]) -> None:
        """Only the time of looking having changed is no news."""
        text = json.dumps(found, ensure_ascii=False)
        news = {name: value for name, value in found.items() if name != "as_of"}
        if self._last is not None and self._last[0] == news:
            return
        self._last = (news, text)
        for listener in self._listeners:
            if listener.full():
                listener.get_nowait()
            listener.put_nowait(text)
