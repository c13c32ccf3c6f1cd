"""The gateway as the world meets it: behind a real socket, in a thread of the test's own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import httpx
import uvicorn.server
from fastapi import FastAPI

from gateway.dashboard import sessions
from gateway.server import ServerLimits, server_for

TICKS_A_SECOND = 100
"""uvicorn looks ten times a second whether it should end: with hundreds of servers, minutes of waiting."""


class _QuickTicks:
    """asyncio, as uvicorn's server sees it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 1 / TICKS_A_SECOND))


uvicorn.server.asyncio = _QuickTicks()  # type: ignore[assignment, attr-defined]
sessions._key = cache(sessions._key)  # a password's key is slow on purpose: here it is worked out once


@contextmanager
def served(
    app: FastAPI, *, trusted_proxies: Sequence[str] = (), limits: ServerLimits | None = None, port: int = 0
) -> Iterator[httpx.Client]:
    listening = socket.create_server(("127.0.0.1", port))
    port = listening.getsockname()[1]
    server = server_for(app, trusted_proxies=trusted_proxies, limits=limits)
    server.config.timeout_graceful_shutdown = 2
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        # The socket listens already: a request that is early waits in its queue.
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=300) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
