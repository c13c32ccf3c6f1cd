"""What holds for every answer: security headers, a line in the log if it refuses, and an end to waiting."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.answers import WORDS
from gateway.refusals import RefusalLog
from gateway.refused_webhooks import RefusedWebhooks
from gateway.server import site_of

ANSWER_SECONDS = 10.0
"""SNS gives up after 15 seconds, and counts that as a failure; a 503 tells it to come again."""
MOST_AT_ONCE = 1000

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
HEADERS = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
"""Unless an answer brings its own."""
HEADERS_OVER_TLS = [*HEADERS, (b"strict-transport-security", b"max-age=31536000")]
BUSY_BODY = json.dumps({"error": WORDS[503]}).encode()
BUSY_HEADERS = [
    (b"content-type", b"application/json"),
    (b"content-length", str(len(BUSY_BODY)).encode()),
    (b"retry-after", b"10"),
    (b"connection", b"close"),
]


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
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(scope, send, self._refusals, self._webhooks)
        if self._running >= self._most:
            await answer.busy("too many requests at once")
            return
        self._running += 1
        late = asyncio.get_running_loop().call_later(self._seconds, answer.too_late)
        try:
            # It cannot be stopped in the middle of a write. What it stores is known by its id.
            await self._app(scope, receive, answer.send)
        finally:
            late.cancel()
            self._running -= 1


class _Answer:
    """The way out of one request: whoever begins to answer first does so alone."""

    def __init__(
        self, scope: Scope, send: Send, refusals: RefusalLog, webhooks: RefusedWebhooks | None
    ) -> None:
        self._started = False
        self._refusing: asyncio.Task[None] | None = None
        self._scope = scope
        self._send = send
        self._refusals = refusals
        self._webhooks = webhooks

    async def send(self, message: Message) -> None:
        """The app's way."""
        if self._refusing is None:
            await self._pass_on(message)

    def too_late(self) -> None:
        if not self._started:  # from here on the app speaks to nobody
            self._refusing = asyncio.ensure_future(self.busy("it took too long"))

    async def busy(self, why: str) -> None:
        state: MutableMapping[str, Any] = self._scope.setdefault("state", {})
        state["why"] = why
        await self._pass_on({"type": "http.response.start", "status": 503, "headers": [*BUSY_HEADERS]})
        await self._pass_on({"type": "http.response.body", "body": BUSY_BODY})

    async def _pass_on(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            self._add_headers(message)
            self._write_line(message["status"])
        await self._send(message)

    def _add_headers(self, message: Message) -> None:
        headers: list[tuple[bytes, bytes]] = message.setdefault("headers", [])
        present = {name for name, _ in headers}
        defaults = HEADERS_OVER_TLS if self._scope.get("scheme") == "https" else HEADERS
        headers.extend(one for one in defaults if one[0] not in present)

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
