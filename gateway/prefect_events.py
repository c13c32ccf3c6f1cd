"""Events for Prefect, over its HTTP API: the gateway does not import prefect.

What they announce is in the store already, and a schedule finds it; an event only makes it sooner. One that
the server did not take is kept and sent again, and so is one for which no trigger is there yet: a server that
has just started answers before anything is deployed to it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx

log = logging.getLogger("mailout.gateway")

SERVER_SECONDS = 5.0
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.5, 5.0
KEEP_SECONDS = 900.0
"""How long an event is sent again. By then the watch has found what it announces."""
TRIGGER_SECONDS = 120.0
"""How long a trigger is waited for. Somebody may have made one that we do not recognise."""
MOST_KEPT = 1000
RUN_START_SECONDS = 600.0
"""A run that has not begun after so long may never begin: it is counted on no more."""

QUEUE_EVENT = "mailout.queue.due"
EVENTS_EVENT = "ses.events.received"
SINGLE_MAILS_EVENT = "mailout.single_mails.waiting"

FINDERS: Mapping[str, tuple[str, ...]] = {
    QUEUE_EVENT: ("run_queue", "send_mailout", "send_article"),
    EVENTS_EVENT: ("ingest_ses_events",),
    SINGLE_MAILS_EVENT: ("drain_outbox",),
}
"""Events that only say that there is something, and the deployments whose next run finds it."""


class Emitter:
    """Posts to `PREFECT_API_URL`/events."""

    def __init__(
        self,
        api_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._url = api_url.rstrip("/")
        self._client = client or httpx.AsyncClient(timeout=SERVER_SECONDS, headers=headers)
        self._under_way: set[asyncio.Task[None]] = set()
        self._kept: set[str] = set()
        self._with_trigger: set[str] = set()
        self._waiting_since: dict[str, float] = {}  # event → since when its trigger is waited for

    def emit(self, event: str, payload: Mapping[str, Any] | None = None, *, after: float = 0.0) -> None:
        """In a moment, or `after` so many seconds; again until the server has taken it."""
        task = asyncio.create_task(self._post_until_taken(event, payload or {}, after))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def post(self, event: str, payload: Mapping[str, Any]) -> bool:
        """Once; whether it has been taken, or was not needed: a run that finds it is about to begin."""
        try:
            if await self._is_found_anyway(event):
                return True
            if not await self._has_trigger(event):
                return False
            await self._ask("/events", [_body(event, payload)])
        except httpx.HTTPError as error:
            log.info("Prefect did not get the event %s: %s", event, error or type(error).__name__)
            return False
        return True

    async def close(self) -> None:
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._client.aclose()

    async def _post_until_taken(self, event: str, payload: Mapping[str, Any], after: float) -> None:
        await asyncio.sleep(after)
        if await self.post(event, payload):
            return
        same = f"{event} {json.dumps(payload, sort_keys=True)}"
        if same in self._kept or len(self._kept) >= MOST_KEPT:
            return  # the same is being sent again already; or the watch finds it
        log.warning("Prefect does not take the event %s yet: it is sent again.", event)
        self._kept.add(same)
        try:
            await self._repeat(event, payload)
        finally:
            self._kept.discard(same)

    async def _repeat(self, event: str, payload: Mapping[str, Any]) -> None:
        pause, until = FIRST_RETRY_SECONDS, _now() + KEEP_SECONDS
        while _now() < until:
            await asyncio.sleep(pause)
            if await self.post(event, payload):
                return
            pause = min(2 * pause, LAST_RETRY_SECONDS)
        log.warning("Prefect did not take the event %s for %.0f minutes.", event, KEEP_SECONDS / 60)

    async def _has_trigger(self, event: str) -> bool:
        """Whether an automation listens; asked until there is one."""
        if event in self._with_trigger:
            return True
        automations = await self._ask("/automations/filter", {})
        is_there = any(one["enabled"] and event in json.dumps(one["trigger"]) for one in automations)
        if is_there or _now() - self._waiting_since.setdefault(event, _now()) > TRIGGER_SECONDS:
            self._with_trigger.add(event)
            return True
        return False

    async def _is_found_anyway(self, event: str) -> bool:
        """A run that was asked for and has not begun yet. Slow starts would otherwise become many runs."""
        if event not in FINDERS:
            return False
        now = datetime.now(UTC)
        since = now - timedelta(seconds=RUN_START_SECONDS)
        runs = {
            "state": {"type": {"any_": ["SCHEDULED", "PENDING"]}},
            "expected_start_time": {"after_": since.isoformat(), "before_": now.isoformat()},
        }
        deployments = {"name": {"any_": list(FINDERS[event])}}
        return bool(await self._ask("/flow_runs/count", {"deployments": deployments, "flow_runs": runs}))

    async def _ask(self, path: str, body: Any) -> Any:
        answer = await self._client.post(f"{self._url}{path}", json=body)
        answer.raise_for_status()
        return answer.json() if answer.content else None


def _body(event: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": str(uuid4()),
        "occurred": datetime.now(UTC).isoformat(),
        "event": event,
        "resource": {"prefect.resource.id": "mailout.gateway"},
        "payload": dict(payload),
    }


def _now() -> float:
    return asyncio.get_running_loop().time()


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
