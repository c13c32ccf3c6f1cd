"""Events for Prefect, over its HTTP API: the gateway does not import prefect.

Nothing depends on them. What they announce is in the store already, and a schedule finds it; an event only
makes it sooner. So they are sent once, in the background, and a failure is a line in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx

log = logging.getLogger("mailout.gateway")

TIMEOUT = 5.0


class Emitter:
    """Posts to `PREFECT_API_URL`/events."""

    def __init__(
        self,
        api_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._url = api_url.rstrip("/") + "/events"
        self._client = client or httpx.AsyncClient(timeout=TIMEOUT, headers=headers)
        self._under_way: set[asyncio.Task[None]] = set()

    def emit(self, event: str, payload: Mapping[str, Any] | None = None, *, after: float = 0.0) -> None:
        """In a moment, or `after` so many seconds."""
        task = asyncio.create_task(self._post(event, payload or {}, after))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def close(self) -> None:
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._client.aclose()

    async def _post(self, event: str, payload: Mapping[str, Any], after: float) -> None:
        await asyncio.sleep(after)
        body = {
            "id": str(uuid4()),
            "occurred": datetime.now(UTC).isoformat(),
            "event": event,
            "resource": {"prefect.resource.id": "mailout.gateway"},
            "payload": dict(payload),
        }
        try:
            answer = await self._client.post(self._url, json=[body])
            answer.raise_for_status()
        except httpx.HTTPError as error:
            log.warning("Prefect did not get the event %s: %s", event, error)


class ThrottledEvent:
    """One event for many occasions: at once, then at most one every few seconds, the last never lost."""

    def __init__(self, emitter: Emitter | None, event: str, every: float) -> None:
        self._emitter = emitter
        self._event = event
        self._every = every
        self._next = 0.0

    def emit(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._emitter is None or now < self._next - self._every:
            return  # one is on its way that will be sent after this moment
        wait = max(0.0, self._next - now)
        self._emitter.emit(self._event, after=wait)
        self._next = now + wait + self._every
