"""Requests that leave in one piece, and answers that are read within one time limit.

A socket's own time limit starts again with every byte: an answer that comes byte by byte would outlast the
lease of whoever waits for it. urllib3 connects (certificates, proxies); what is said over the connection is
written and read here: `http.client` spends most of its time on headers that nobody looks at.
"""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterable, Mapping
from functools import cache
from http.client import BadStatusLine, RemoteDisconnected
from http.client import HTTPResponse as PlainResponse
from typing import Any

from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
)
from botocore.httpsession import URLLib3Session
from httptools import HttpParserError, HttpResponseParser
from urllib3 import HTTPHeaderDict, HTTPResponse

SUCCESS = 200
READ_BYTES = 65_536
MOST_BYTES = 4_000_000
"""Of an answer: SES's are of some hundred bytes for each message."""


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


class _Answer:
    """One answer, as its bytes come in: the parser calls `on_…`."""

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        self._size = 0
        self._begin()

    def _begin(self) -> None:
        self.status = 0
        self.reason = ""
        self.headers = HTTPHeaderDict()
        self.body = b""
        self.is_complete = False
        self.ends_connection = True

    def on_message_begin(self) -> None:
        if self.is_complete:
            raise ValueError("the answer was over")  # what follows is not read

    def on_status(self, part: bytes) -> None:
        self.reason += part.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.add(name.decode("latin-1"), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, part: bytes) -> None:
        self.body += part

    def on_message_complete(self) -> None:
        if self.status < SUCCESS:  # it only says: go on
            return self._begin()
        self.is_complete = True
        self.ends_connection = not self._parser.should_keep_alive()
        return None

    def feed(self, data: bytes) -> None:
        self._size += len(data)
        if not data:
            self._end()
        elif self._size > MOST_BYTES:
            raise BadStatusLine(f"an answer of more than {MOST_BYTES:,} bytes")
        else:
            try:
                self._parser.feed_data(data)
            except HttpParserError as error:
                self.ends_connection = True
                if not self.is_complete:  # else it came after the answer
                    raise BadStatusLine(f"no HTTP: {error}") from error

    def _end(self) -> None:
        """The other side has closed: so ends a body without a length, or one that is cut short."""
        if not self.status or "Transfer-Encoding" in self.headers:  # which says itself where it ends
            raise RemoteDisconnected("the connection was closed without an answer")
        self.is_complete = True


class _Reader(io.RawIOBase):
    """The socket, waited for as long as is left."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(deadline.left())
        return int(self._sock.recv_into(buffer))


class _ProxyAnswer(PlainResponse):
    """To CONNECT, which urllib3 reads itself."""

    def __init__(self, sock: Any, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp.close()
        self.fp: Any = io.BufferedReader(_Reader(sock))


class _Exchange:
    """For a connection: one request and its answer, both within the call's time."""

    sock: Any
    response_class = _ProxyAnswer

    def request(
        self,
        method: str,
        url: str,
        body: bytes | Iterable[bytes] | None = None,
        headers: Mapping[str, str | bytes] | None = None,
        **_: Any,
    ) -> None:
        if self.sock is None:
            self.connect()  # type: ignore[attr-defined]
        first = f"{method} {url} HTTP/1.1\r\nAccept-Encoding: identity".encode()
        head = [first, *map(_header, (headers or {}).items()), b"", b""]
        self.sock.settimeout(deadline.left())
        # In one piece: two packets would wake up the other side twice.
        parts = (body,) if isinstance(body, bytes) else body or ()
        self.sock.sendall(b"".join((b"\r\n".join(head), *parts)))

    def getresponse(self) -> HTTPResponse:
        answer = _Answer()
        while not answer.is_complete:
            self.sock.settimeout(deadline.left())
            answer.feed(self.sock.recv(READ_BYTES))
        if answer.ends_connection:
            self.close()  # type: ignore[attr-defined]
        answer.headers.discard("Transfer-Encoding")  # it is put together
        return HTTPResponse(
            body=io.BytesIO(answer.body),
            headers=answer.headers,
            status=answer.status,
            reason=answer.reason,
            preload_content=False,
            decode_content=False,
            enforce_content_length=False,
        )


def _header(header: tuple[str, str | bytes]) -> bytes:
    name, value = header
    line = name.encode("ascii") + b": " + (value if isinstance(value, bytes) else value.encode("latin-1"))
    if b"\n" in line or b"\r" in line:
        raise ValueError(f"the header {name} has more than one line")
    return line


class _Connection(_Exchange, AWSHTTPConnection):  # type: ignore[misc]
    pass


class _SecureConnection(_Exchange, AWSHTTPSConnection):  # type: ignore[misc]
    pass


class _ReadAtOnce:
    """For a pool: an answer that is here is read, so its connection is free again."""

    def urlopen(self, *arguments: Any, **named: Any) -> Any:
        return super().urlopen(*arguments, **{**named, "release_conn": True})  # type: ignore[misc]


class _Pool(_ReadAtOnce, AWSHTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(_ReadAtOnce, AWSHTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class TimedSession(URLLib3Session):
    """botocore's HTTP session over such connections."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Its pool managers share this mapping, also those for proxies, which come later.
        classes: dict[str, Any] = self._pool_classes_by_scheme  # type: ignore[attr-defined]
        classes.update({"http": _Pool, "https": _SecurePool})
        # One address, always: urllib3 would parse it and look its pool up for each request.
        manager: Any = self._manager  # type: ignore[attr-defined]
        manager.connection_from_url = cache(manager.connection_from_url)
