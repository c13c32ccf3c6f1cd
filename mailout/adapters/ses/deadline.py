"""Answers that are read within one time limit, however slowly they trickle in.

A socket's own time limit starts again with every byte: an answer that comes byte by byte would outlast the
lease of whoever waits for it.
"""

from __future__ import annotations

import io
import threading
import time
from http.client import HTTPResponse
from typing import Any

from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
)
from botocore.httpsession import URLLib3Session


class Deadline(threading.local):
    """Until when this thread's call may wait, on the monotonic clock."""

    at: float | None = None

    def left(self) -> float | None:
        """Seconds; None: no limit of ours."""
        if self.at is None:
            return None
        left = self.at - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        return left


deadline = Deadline()


class _Reader(io.RawIOBase):
    """The socket, waited for as long as is left."""

    def __init__(self, sock: Any, raw: Any) -> None:
        self._sock = sock
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = deadline.left()
        if left is not None:
            self._sock.settimeout(left)
        read: int | None = self._raw.readinto(buffer)
        return read

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(HTTPResponse):
    def __init__(self, sock: Any, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp: Any = io.BufferedReader(_Reader(sock, self.fp.detach()))


class _Timed:
    """For a connection: what it waits for ends with the call's time."""

    response_class = _Response
    sock: Any

    def request(self, *arguments: Any, **named: Any) -> Any:
        if self.sock is not None:  # used before: what was left then is not what is left now
            self.sock.settimeout(deadline.left())
        return super().request(*arguments, **named)  # type: ignore[misc]


class _Connection(_Timed, AWSHTTPConnection):  # type: ignore[misc]
    pass


class _SecureConnection(_Timed, AWSHTTPSConnection):  # type: ignore[misc]
    pass


class _Pool(AWSHTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(AWSHTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class TimedSession(URLLib3Session):
    """botocore's HTTP session over such connections."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Its pool managers share this mapping, also those for proxies, which come later.
        classes: dict[str, Any] = self._pool_classes_by_scheme  # type: ignore[attr-defined]
        classes.update({"http": _Pool, "https": _SecurePool})
