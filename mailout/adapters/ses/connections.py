"""One request and its answer: over a fresh connection, before one deadline, and never twice.

A stale keep-alive connection looks like a lost answer, and a lost answer is a message in doubt. So each call
takes the connection used last, and one that has been idle too long is closed instead of used. A socket's own
time limit starts again with every byte; here each wait gets what remains of the whole call.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from botocore.httpsession import ProxyConfiguration, get_cert_path
from botocore.utils import get_environ_proxies
from httptools import HttpParserError, HttpResponseParser
from urllib3.util import wait_for_read
from urllib3.util.ssltransport import SSLTransport

from mailout.base.clock import monotonic

PORTS = {"http": 80, "https": 443}
SUCCESS = 200
READ_BYTES = 65_536
MAX_ANSWER_BYTES = 4_000_000
"""SES's answers have some hundred bytes for each message."""


class NotConnectedError(Exception):
    """Nothing was written: the message was surely not accepted."""


@dataclass(slots=True)
class Call:
    """One request, and what is known of it."""

    deadline: float  # on the monotonic clock
    written: bool = False  # it was handed to the socket: from here on it may have been accepted

    def seconds_remaining(self) -> float:
        seconds = self.deadline - monotonic()
        if seconds <= 0:
            raise TimeoutError("timed out")
        return seconds


class Answer:
    """What came back, as its bytes come in: the parser calls `on_…`."""

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        self._size = 0
        self._begin()

    def _begin(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}  # names in lower case
        self.body = b""
        self.is_complete = False
        self.ends_connection = True

    def on_message_begin(self) -> None:
        if self.is_complete:
            raise ValueError("the answer was over")  # what follows is not read

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, part: bytes) -> None:
        self.body += part

    def on_message_complete(self) -> None:
        if self.status < SUCCESS:  # 100 Continue: the answer follows
            return self._begin()
        self.is_complete = True
        self.ends_connection = not self._parser.should_keep_alive()
        return None

    def feed(self, data: bytes) -> None:
        self._size += len(data)
        if not data:
            self._end()
        elif self._size > MAX_ANSWER_BYTES:
            raise ConnectionError(f"an answer of more than {MAX_ANSWER_BYTES:,} bytes")
        else:
            try:
                self._parser.feed_data(data)
            except HttpParserError as error:
                self.ends_connection = True
                if not self.is_complete:  # else it came after the answer
                    raise ConnectionError(f"no HTTP: {error}") from error

    def _end(self) -> None:
        """The other side has closed: so ends a body without a length, or one that is cut short."""
        if not self.status or "transfer-encoding" in self.headers:  # which says itself where it ends
            raise ConnectionError("the connection was closed without an answer")
        self.is_complete = True


class Connections:
    """To one server, as botocore would connect: through the same proxy, with the same certificates."""

    def __init__(self, url: str, *, ca_bundle: str | None, connect_limit: float, max_idle: float) -> None:
        self._server = urlsplit(url)
        proxies = ProxyConfiguration(get_environ_proxies(url))
        proxy: str | None = proxies.proxy_url_for(url)
        self._proxy = urlsplit(proxy) if proxy else None
        self._proxy_headers: Mapping[str, str] = proxies.proxy_headers_for(proxy) if proxy else {}
        self._tls = _trusting(ca_bundle)
        self._connect_limit = connect_limit
        self._max_idle = max_idle
        self._idle: list[tuple[float, Any]] = []  # since when; the one used last at the end
        self._lock = threading.Lock()

    def request_lines(self, path: str) -> list[str]:
        """The first line of a POST, and what only a proxy reads."""
        if self._proxy is None or self._server.scheme == "https":
            return [f"POST {path} HTTP/1.1"]
        server = f"{self._server.scheme}://{self._server.netloc}"
        return [f"POST {server}{path} HTTP/1.1", *map(": ".join, self._proxy_headers.items())]

    def exchange(self, request: bytes, call: Call) -> Answer:
        """`NotConnectedError`: nothing was written. Any other error: nobody knows what became of it."""
        sock = self._take() or self._connect_in_time(call)
        try:
            call.written = True
            _write(sock, request, call)
            answer = _read(sock, call)
        except BaseException:
            sock.close()
            raise
        if answer.ends_connection:
            sock.close()
        else:
            with self._lock:
                self._idle.append((monotonic(), sock))
        return answer

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, sock in idle:
            sock.close()

    def _take(self) -> Any | None:
        """A connection that is neither old nor closed by the other side; the others are closed."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                since, sock = self._idle.pop()
            if monotonic() - since <= self._max_idle and not wait_for_read(sock, 0):
                return sock
            sock.close()

    def _connect_in_time(self, call: Call) -> Any:
        """Late, nothing may be written: the answer could come after the sender's lease."""
        connecting = Call(min(call.deadline, monotonic() + self._connect_limit))
        try:
            sock = self._connect(connecting)
            try:
                connecting.seconds_remaining()
            except TimeoutError:
                sock.close()
                raise
        except OSError as error:
            raise NotConnectedError(f"{type(error).__name__}: {error}") from error
        return sock

    def _connect(self, call: Call) -> Any:
        first = self._proxy or self._server
        sock: Any = socket.create_connection(_address(first), call.seconds_remaining())
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if first.scheme == "https":
                sock = self._secure(sock, first, call)
            if self._proxy is not None and self._server.scheme == "https":
                self._open_tunnel(sock, call)
                sock = self._secure(sock, self._server, call)
        except BaseException:
            sock.close()
            raise
        return sock

    def _secure(self, sock: Any, server: SplitResult, call: Call) -> Any:
        sock.settimeout(call.seconds_remaining())
        if isinstance(sock, ssl.SSLSocket):  # through a proxy that itself is reached by TLS
            return SSLTransport(sock, self._tls, server.hostname)
        return self._tls.wrap_socket(sock, server_hostname=server.hostname)

    def _open_tunnel(self, sock: Any, call: Call) -> None:
        host, port = _address(self._server)
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
        lines += [*map(": ".join, self._proxy_headers.items()), "", ""]
        _write(sock, "\r\n".join(lines).encode("latin-1"), call)
        answer = _read(sock, call, head_alone=True)
        if answer.status != SUCCESS:
            raise ConnectionError(f"the proxy answered {answer.status}")


def _trusting(ca_bundle: str | None) -> ssl.SSLContext:
    """Who may be believed to be SES, or a proxy: by boto3's certificates, or by your own file."""
    try:
        context = ssl.create_default_context(cafile=ca_bundle or get_cert_path(True))
    except OSError as error:
        raise ValueError(f"the CA bundle {ca_bundle} cannot be used ({error})") from error
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # boto3 is not so strict: many companies' own CAs fail it
    return context


def _address(url: SplitResult) -> tuple[str, int]:
    return url.hostname or "", url.port or PORTS[url.scheme]


def _write(sock: Any, data: bytes, call: Call) -> None:
    """In one piece: two packets would wake up the other side twice."""
    rest = memoryview(data)
    while rest:
        sock.settimeout(call.seconds_remaining())
        rest = rest[sock.send(rest) :]


def _read(sock: Any, call: Call, *, head_alone: bool = False) -> Answer:
    answer = Answer()
    while not (answer.is_complete or (head_alone and answer.status)):
        sock.settimeout(call.seconds_remaining())
        answer.feed(sock.recv(READ_BYTES))
    return answer
