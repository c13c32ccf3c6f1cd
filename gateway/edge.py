"""What holds for every request and answer: one host, no endless cookie, security headers, a line in the log
if it refuses, and an end to waiting."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.answers import WORDS
from gateway.pages import Pages
from gateway.refusals import RefusalLog, RefusedWebhooks
from gateway.server import site_of

ANSWER_SECONDS = 10.0
"""SNS gives up after 15 seconds, and counts that as a failure; a 503 tells it to come again."""
MOST_AT_ONCE = 1000
MOST_COOKIE_BYTES = 4096
"""Of ours together: they have some hundred, and Python's parser takes the square of the length."""
_HOST = re.compile(rb"[A-Za-z0-9._:\[\]-]{1,255}")

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the address of a reader's page is the right to unsubscribe
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
HEADERS = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
"""Unless an answer brings its own."""
HEADERS_OVER_TLS = [*HEADERS, (b"strict-transport-security", b"max-age=31536000")]


@dataclass
class Edge:
    """Around everything, the error pages of the framework included."""

    app: ASGIApp
    pages: Pages
    refusals: RefusalLog
    webhooks: RefusedWebhooks | None
    seconds: float  # for an answer
    _running: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = Answer(self, scope, receive, send)
        if self._running >= MOST_AT_ONCE:
            await answer.refuse(503, "too many requests at once")
            return
        if (why := _misshapen(scope)) is not None:
            await answer.refuse(400, why)
            return
        _keep_own_cookies(scope)
        self._running += 1
        answer.wait(self.seconds)
        scope.setdefault("state", {})["answer"] = answer
        try:
            # It cannot be stopped in the middle of a write. What it stores is known by its id.
            await self.app(scope, receive, answer.send)
        finally:
            answer.wait(None)
            self._running -= 1


def _misshapen(scope: Scope) -> str | None:
    """What two readers of the same bytes, we and a proxy, could understand differently."""
    if scope.get("http_version") not in ("1.0", "1.1"):
        return "a version of HTTP that is not spoken here"
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    return None if len(hosts) == 1 and _HOST.fullmatch(hosts[0]) else "no Host, or more than one, or no name"


def _keep_own_cookies(scope: Scope) -> None:
    """Other pages of the domain set cookies for us, too, of any length: they must not cost anybody ours."""
    sent = [value for name, value in scope["headers"] if name == b"cookie"]
    if not sent:
        return
    cookies = (one.strip() for value in sent for one in value.split(b";"))
    ours = b"; ".join(one for one in cookies if one.startswith(b"mailout_"))
    scope["headers"] = [one for one in scope["headers"] if one[0] != b"cookie"]
    if 0 < len(ours) <= MOST_COOKIE_BYTES:
        scope["headers"].append((b"cookie", ours))


class Answer:
    """The way out of one request: whoever begins to answer first does so alone."""

    def __init__(self, edge: Edge, scope: Scope, receive: Receive, send: Send) -> None:
        self._started = False
        self._refusing: asyncio.Task[None] | None = None
        self._late: asyncio.TimerHandle | None = None
        self._edge = edge
        self._scope = scope
        self._receive = receive
        self._send = send

    async def send(self, message: Message) -> None:
        """The app's way."""
        if self._refusing is None:
            await self._pass_on(message)

    def wait(self, seconds: float | None) -> bool:
        """For so long from now on; None: to the end, since what is being stored is no longer refused. False:
        it was refused already, so nothing may be stored."""
        if self._late is not None:
            self._late.cancel()
        if seconds is not None:
            self._late = asyncio.get_running_loop().call_later(seconds, self._too_late)
        return self._refusing is None

    def _too_late(self) -> None:
        if not self._started:  # from here on the app speaks to nobody
            self._refusing = asyncio.ensure_future(self.refuse(503, "it took too long"))

    async def refuse(self, status: int, why: str) -> None:
        self._scope.setdefault("state", {})["why"] = why
        headers = {"Connection": "close"} | ({"Retry-After": "10"} if status == 503 else {})
        answer = self._edge.pages.refusal(Request(self._scope), status, headers)
        await answer(self._scope, self._receive, self._pass_on)

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
        if self._edge.webhooks is not None and self._scope["method"] == "POST":
            self._edge.webhooks.add(path, why)
        if status in (401, 429):
            client = self._scope.get("client")
            self._edge.refusals.wrong_token(site_of(client[0] if client else None), path)
            return
        self._edge.refusals.request(self._scope["method"], path, status, why)
