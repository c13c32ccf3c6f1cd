"""The HTTP server: uvicorn, with what it lacks against clients that are slow, many or rude.

A request has to arrive within a deadline, an answer has to be read, one address may hold only so many
connections, and all of them together leave enough files for the store. What is refused here is answered
before the app sees it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import resource
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gateway.refusals import RefusalLog

ACCEPT_AT_ONCE = 16
"""Connections taken in one turn of the loop. asyncio would take the whole backlog, and run out of files
before the first of them can be refused."""
LISTEN_BACKLOG = 1024
UNREAD_BYTES_IN_SYSTEM = 128 * 1024
"""Of an answer, in the system's own buffer (Linux doubles it): else megabytes for each client that reads
nothing, and one that reads slowly would show no progress for minutes."""
FILES_FOR_OURSELVES = 64 + 4 * ACCEPT_AT_ONCE
"""Database, media, threads; and connections that are accepted but not yet counted."""
MOST_CONNECTIONS = 4096
MOST_PER_ADDRESS = 256
MOST_HEADER_BYTES = 64 * 1024
"""All that is not body; chunks may take a quarter of the body more. The parser itself knows no limit."""

_CLOSE = (
    b"content-type: text/plain; charset=utf-8\r\nx-content-type-options: nosniff\r\nconnection: close\r\n"
)
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 10\r\n" + _CLOSE + b"content-length: 0\r\n\r\n"
TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + _CLOSE + b"content-length: 0\r\n\r\n"
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\n" + _CLOSE + b"content-length: 0\r\n\r\n"


@dataclass
class ServerLimits:
    """What clients may hold, and what they hold now."""

    connections: int = MOST_CONNECTIONS
    per_address: int = MOST_PER_ADDRESS
    request_seconds: float = 10.0  # for all of a request to arrive, from its first byte or the connection
    stalled_seconds: float = 15.0  # without a byte of an answer being taken; noticed within twice that
    trusted: Sequence[str] = ()  # proxies: many people's connections come from there
    log: RefusalLog = field(default_factory=RefusalLog)
    held: Counter[str] = field(default_factory=Counter)

    @classmethod
    def for_files(cls, files: int, trusted: Sequence[str] = ()) -> ServerLimits:
        """So that a process that may open so many files never runs out of them."""
        connections = max(8, min(MOST_CONNECTIONS, files - FILES_FOR_OURSELVES))
        return cls(connections, min(MOST_PER_ADDRESS, max(4, connections // 2)), trusted=trusted)

    def trusts(self, address: str | None) -> bool:
        found = _ip(address)
        return found is not None and any(found in ipaddress.ip_network(one) for one in self.trusted)


def site_of(address: str | None) -> str:
    """Who counts as one: an IPv4 address, or the /64 that a single IPv6 customer gets."""
    found = _ip(address)
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((found, 64), strict=False))
    return "unknown" if found is None else str(found)


def network_of(address: str | None) -> str:
    """Whose customers share a limit: a /24, or the /56 that an IPv6 household gets."""
    found = _ip(address)
    if found is None:
        return "unknown"
    return str(ipaddress.ip_network((found, 24 if found.version == 4 else 56), strict=False))


def _ip(address: str | None) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


@dataclass
class SlowReader:
    """Calls `stalled` when nothing of what waits for a client was taken from one look to the next."""

    transport: asyncio.WriteTransport
    later: Callable[[float, Callable[[], None]], asyncio.TimerHandle]
    seconds: float
    stalled: Callable[[], None]
    _waited: int = 0  # bytes, at the last look

    def __post_init__(self) -> None:
        self._timer = self.later(self.seconds, self._look)

    def took_some(self) -> None:
        self._waited = 0

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        waiting = self.transport.get_write_buffer_size()
        if 0 < self._waited <= waiting:
            self.stalled()
            return
        self._waited = waiting
        self._timer = self.later(self.seconds, self._look)


class LimitedProtocol(HttpToolsProtocol):
    """One connection. `limits` is set by `protocol_with`: all connections of a server share one."""

    limits: ServerLimits
    _site: str | None = None
    _deadline: asyncio.TimerHandle | None = None
    _reader: SlowReader | None = None
    _heard = False
    _in_body = False
    _body_bytes = 0
    _other_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Here, and not on the listening socket: a connection may be older than the server that accepts it.
        # asyncio sets NODELAY only for sockets that name their protocol. Headers and body of an answer are
        # two writes: the second would wait 40 ms for the client's system to acknowledge the first.
        one = transport.get_extra_info("socket")
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD_BYTES_IN_SYSTEM)
        address = self.client[0] if self.client else None
        site, limits = site_of(address), self.limits
        full = limits.held.total() >= limits.connections
        if full or (limits.held[site] >= limits.per_address and not limits.trusts(address)):
            limits.log.connection(site, "too many connections" if full else "too many connections from it")
            transport.write(BUSY)
            transport.close()
            return
        self._site = site
        limits.held[site] += 1
        self._reader = SlowReader(transport, self.loop.call_later, limits.stalled_seconds, self._stalled)
        self._start_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_deadline()
        if self._reader is not None:
            self._reader.stop()
        if self._site is not None:
            self.limits.held[self._site] -= 1
            if not self.limits.held[self._site]:
                del self.limits.held[self._site]
            self._site = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._heard = True
        if self._deadline is None:
            self._start_deadline()
        self._other_bytes += len(data)
        super().data_received(data)
        if self._other_bytes > MOST_HEADER_BYTES + self._body_bytes // 4 and not self.transport.is_closing():
            self.limits.log.connection(self._site or "unknown", "its headers are too long")
            self._refuse(TOO_LONG)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._in_body = True

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        self._other_bytes -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body, self._body_bytes, self._other_bytes = False, 0, 0
        self._stop_deadline()
        super().on_message_complete()

    def resume_writing(self) -> None:
        if self._reader is not None:
            self._reader.took_some()
        super().resume_writing()

    def _stalled(self) -> None:
        self.limits.log.connection(self._site or "unknown", "it did not read its answer")
        self.transport.abort()

    def _start_deadline(self) -> None:
        self._deadline = self.loop.call_later(self.limits.request_seconds, self._too_slow)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if self.transport.is_closing():
            return
        if not self._heard:
            self.transport.close()
            return
        self.limits.log.connection(self._site or "unknown", "its request did not arrive in time")
        self._refuse(TOO_SLOW)

    def _refuse(self, answer: bytes) -> None:
        """Unless an answer is on its way: to this request, or to the one before it."""
        answering = self.cycle is not None and (
            self.cycle.response_started if self._in_body else not self.cycle.response_complete
        )
        if not answering:
            self.transport.write(answer)
        self.transport.close()


def protocol_with(limits: ServerLimits) -> type[LimitedProtocol]:
    """uvicorn makes a protocol from its class alone."""
    return type("LimitedProtocol", (LimitedProtocol,), {"limits": limits})


class GatewayServer(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for one in sockets or ():
            # uvicorn's setting is both: how many may wait, and how many are taken at once
            one.listen(LISTEN_BACKLOG)


def server_for(
    app: Any, *, trusted_proxies: Sequence[str] = (), limits: ServerLimits | None = None
) -> GatewayServer:
    """A server for the app; `run(sockets=[…])` starts it."""
    if limits is None:
        limits = ServerLimits.for_files(resource.getrlimit(resource.RLIMIT_NOFILE)[0], trusted_proxies)
    config = uvicorn.Config(
        app,
        http=protocol_with(limits),
        backlog=ACCEPT_AT_ONCE,
        log_config=None,
        access_log=False,  # its lines would hold tokens, which are addresses
        server_header=False,
        ws="none",
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        timeout_graceful_shutdown=10,
    )
    return GatewayServer(config)
