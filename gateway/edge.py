"""What holds for every answer: security headers, a line in the log if it refuses, and an end to waiting."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import MutableMapping
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.answers import WORDS
from gateway.refusals import RefusalLog
from gateway.refused_webhooks import RefusedWebhooks
from gateway.server import site_of

log = logging.getLogger("mailout.gateway")

ANSWER_SECONDS = 10.0
"""SNS gives up after 15 seconds, and counts that as a failure; a 503 tells it to come again."""
MOST_AT_ONCE = 1000
RETRY_AFTER = "10"

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Unless an answer brings its own."""
OVER_TLS = {"Strict-Transport-Security": "max-age=31536000"}


class Edge:
    """Around everything, the error pages of the framework included."""

    def __init__(
        self,
        app: ASGIApp,
        refusals: RefusalLog,
        webhooks: RefusedWebhooks | None = None,
        *,
        seconds: float = ANSWER_SECONDS,
        most: int = MOST_AT_ONCE,
    ) -> None:
        self._app = app
        self._refusals = refusals
        self._webhooks = webhooks
        self._seconds = seconds
        self._most = most
        self._running: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(scope, send, self._refusals, self._webhooks)
        if len(self._running) >= self._most:
            await answer.busy("too many requests at once")
            return
        task = asyncio.ensure_future(self._app(scope, receive, answer.send))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            await asyncio.wait({task}, timeout=self._seconds)
            if not task.done() and not answer.started:
                # It cannot be stopped in the middle of a write. What it stores is known by its id.
                task.add_done_callback(_ended_late)
                await answer.busy("it took too long")
            else:
                await task
        except asyncio.CancelledError:
            task.cancel()
            raise


class _Answer:
    """The way out of one request: whoever begins to answer first does so alone."""

    def __init__(
        self, scope: Scope, send: Send, refusals: RefusalLog, webhooks: RefusedWebhooks | None
    ) -> None:
        self.started = False
        self._closed = False
        self._scope = scope
        self._send = send
        self._refusals = refusals
        self._webhooks = webhooks

    async def send(self, message: Message) -> None:
        if self._closed:
            return
        if message["type"] == "http.response.start":
            self.started = True
            self._add_headers(message)
            self._write_line(message["status"])
        await self._send(message)

    async def busy(self, why: str) -> None:
        state: MutableMapping[str, Any] = self._scope.setdefault("state", {})
        state["why"] = why
        body = json.dumps({"error": WORDS[503]}).encode()
        headers = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            "retry-after": RETRY_AFTER,
            "connection": "close",
        }
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": 503, "headers": raw})
        await self.send({"type": "http.response.body", "body": body})
        self._closed = True

    def _add_headers(self, message: Message) -> None:
        headers = MutableHeaders(scope=message)
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
        if self._scope.get("scheme") == "https":
            for name, value in OVER_TLS.items():
                headers.setdefault(name, value)

    def _write_line(self, status: int) -> None:
        if status < 400:
            return
        path = self._scope["path"]
        why = self._scope.get("state", {}).get("why") or WORDS.get(status, "not possible")
        if self._webhooks is not None and self._scope["method"] == "POST":
            self._webhooks.add(path, why)
        if status in (401, 429):
            client = self._scope.get("client")
            self._refusals.wrong_token(site_of(client[0] if client else None), path)
            return
        self._refusals.request(self._scope["method"], path, status, why)


def _ended_late(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("A request that had been answered with 503 failed: %r", error)
