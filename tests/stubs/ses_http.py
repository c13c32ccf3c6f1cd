"""A small HTTP/1.1 server with keep-alive: fast, and able to behave badly on purpose."""

from __future__ import annotations

import asyncio
import gc
import json
import math
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

HEAD_END = b"\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)


@dataclass(slots=True)
class Reply:
    """What goes back, when, or that nothing does."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    drop: bool = False  # close the connection without a word
    hang: bool = False  # say nothing until the client gives up
    cut: bool = False  # promise more than comes, and close


Handler = Callable[[str, str, bytes], Reply]


@dataclass(slots=True)
class Manners:
    """How connections are treated; a test changes them while the server runs."""

    stale_after: float | None = None  # a request on a connection idle for longer is met with a reset
    close_after: float | None = None  # an idle connection is closed after so long
    open: int = 0  # how many there are


class Connection(asyncio.Protocol):
    def __init__(self, handler: Handler, manners: Manners) -> None:
        self._handler = handler
        self._manners = manners
        self._buffer = bytearray()
        self._busy = False
        self._used = math.inf  # when it was last used: one that has never been is not stale
        self._closing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._manners.open += 1

    def connection_lost(self, error: Exception | None) -> None:
        self._manners.open -= 1
        if self._closing:
            self._closing.cancel()

    def data_received(self, data: bytes) -> None:
        stale_after = self._manners.stale_after
        if not self._buffer and stale_after and time.monotonic() - self._used > stale_after:
            self._transport.abort()
            return
        if self._closing:
            self._closing.cancel()
        self._buffer += data
        self._next()

    def _next(self) -> None:
        """One request at a time; the next one waits for this one's reply."""
        end = -1 if self._busy else self._buffer.find(HEAD_END)
        if end < 0:
            return
        head = bytes(self._buffer[: end + 2])
        found = LENGTH.search(head)
        size = end + len(HEAD_END) + (int(found.group(1)) if found else 0)
        if len(self._buffer) < size:
            return
        body = bytes(self._buffer[end + len(HEAD_END) : size])
        del self._buffer[:size]
        self._busy = True
        method, path, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        reply = self._handler(method, path, body)
        if reply.delay:
            asyncio.get_running_loop().call_later(reply.delay, self._reply, reply)
        else:
            self._reply(reply)

    def _reply(self, reply: Reply) -> None:
        if self._transport.is_closing() or reply.hang:
            return
        if reply.drop:
            self._transport.abort()
            return
        promised = len(reply.body) + (100 if reply.cut else 0)
        lines = [f"HTTP/1.1 {reply.status} .", f"Content-Length: {promised}"]
        lines += [f"{name}: {value}" for name, value in reply.headers.items()]
        self._transport.write("\r\n".join([*lines, "", ""]).encode("latin-1") + reply.body)
        if reply.cut:
            self._transport.close()
            return
        self._busy = False
        self._used = time.monotonic()
        if self._manners.close_after is not None:
            later = asyncio.get_running_loop().call_later
            self._closing = later(self._manners.close_after, self._transport.close)
        self._next()


async def serve(handler: Handler, manners: Manners) -> None:
    """Listen on a free port, say which in one line of JSON, and go on until our parent is gone."""
    gc.disable()  # what it keeps, it keeps; and a pause here would count as the sender's
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(handler, manners), "127.0.0.1", 0, backlog=512)
    port = server.sockets[0].getsockname()[1]
    print(json.dumps({"url": f"http://127.0.0.1:{port}", "port": port, "pid": os.getpid()}), flush=True)
    orphaned = asyncio.Event()
    _watch(os.getppid(), orphaned)
    await orphaned.wait()


def _watch(parent: int, orphaned: asyncio.Event) -> None:
    if os.getppid() != parent:
        orphaned.set()
    else:
        asyncio.get_running_loop().call_later(1.0, _watch, parent, orphaned)
