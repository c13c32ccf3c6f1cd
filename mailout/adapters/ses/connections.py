"""How a request leaves: on a connection known to be fresh, in time or not at all, and never twice.

A stale keep-alive connection looks like a lost answer, and a lost answer is a message in doubt. So each call
takes the connection used last, and one that has been idle too long is closed instead of used. A call also
notes the moment from which it can have been accepted: when its body is handed to the socket.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ConnectionError as BotoConnectionError
from botocore.exceptions import HTTPClientError
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

from mailout.adapters.ses.deadline import TimedSession, deadline

FAILED_TO_REACH = (HTTPClientError, BotoConnectionError)
"""What botocore raises when there was no answer."""


class TooLateError(Exception):
    """Connecting took so long that the answer could not come in time."""


@dataclass(slots=True)
class Call:
    """One request, and what is known of it."""

    deadline: float
    body: bytes | None = None  # written by ourselves; None: by botocore
    left: bool = False  # its body was handed to the socket: from here on it may have been accepted


class _Body:
    """A request's body that notes when it leaves, and refuses to leave late."""

    def __init__(self, body: bytes, call: Call, latest: float) -> None:
        self._body = body
        self._call = call
        self._latest = latest

    def __iter__(self) -> Iterator[bytes]:
        if time.monotonic() > self._latest:
            raise TooLateError
        self._call.left = True
        yield self._body


class Connections:
    """botocore's HTTP sessions, one connection each; `write` and `send` handle events of the client."""

    def __init__(
        self,
        open_session: Callable[[], URLLib3Session],
        *,
        call_limit: float,
        connect_limit: float,
        max_idle: float,
    ) -> None:
        self._open = open_session
        self._call_limit = call_limit
        self._connect_limit = connect_limit
        self._max_idle = max_idle
        self._idle: list[tuple[float, URLLib3Session]] = []  # the one used last at the end
        self._lock = threading.Lock()
        self._here = threading.local()

    @contextmanager
    def call(self, deadline: float, body: bytes | None = None) -> Iterator[Call]:
        """Everything sent by this thread inside belongs to this call."""
        call = Call(deadline, body)
        self._here.call = call
        try:
            yield call
        finally:
            self._here.call = None

    def write(self, params: dict[str, Any], **_: Any) -> None:
        """`before-call`: the call's own body, if it has one, in place of what botocore has written."""
        call = getattr(self._here, "call", None)
        if call is not None and call.body is not None:
            params["body"] = call.body

    def send(self, request: Any, **_: Any) -> Any:
        """`before-send`."""
        now = time.monotonic()
        call = getattr(self._here, "call", None) or Call(now + self._call_limit)
        if isinstance(request.body, bytes):
            request.body = _Body(request.body, call, now + self._connect_limit)
        else:
            call.left = True  # nothing tells when it leaves: it may have
        request.headers["Host"] = _host(request.url)
        # The whole call ends by the deadline, on which the sender's lease depends: reading gets what is left.
        deadline.at = call.deadline
        read_limit = max(0.001, call.deadline - now)
        request.context = {**(getattr(request, "context", None) or {}), "read_timeout": read_limit}
        session = self._take(now)
        try:
            response = session.send(request)
        except BaseException:
            session.close()
            raise
        finally:
            deadline.at = None
        with self._lock:
            self._idle.append((time.monotonic(), session))
        return response

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, session in idle:
            session.close()

    def _take(self, now: float) -> URLLib3Session:
        with self._lock:
            if self._idle and now - self._idle[-1][0] <= self._max_idle:
                return self._idle.pop()[1]
            stale, self._idle = self._idle, []
        for _, session in stale:
            session.close()
        return self._open()


@cache
def _host(url: str) -> str:
    """As it was signed: in small letters, without a user, without the port that goes without saying."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    return host.removesuffix(":443" if parts.scheme == "https" else ":80")


def session_opener(
    endpoint_url: str, *, verify: str | None, call_limit: float, connect_limit: float
) -> Callable[[], URLLib3Session]:
    """Sessions like those botocore would open itself: the same proxy and the same certificates."""
    options: dict[str, Any] = {
        "verify": verify or True,
        "proxies": get_environ_proxies(endpoint_url),
        "timeout": (connect_limit, call_limit),  # the second shrinks in later calls of a batch
        "max_pool_connections": 1,
        "socket_options": [
            (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        ],
    }
    return lambda: TimedSession(**options)
