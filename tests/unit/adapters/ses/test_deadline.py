"""What comes back over the wire, byte by byte if it must be."""

import contextlib
import socket
import threading
import time

import pytest
from botocore.awsrequest import AWSRequest
from botocore.exceptions import ConnectionClosedError, HTTPClientError

from mailout.adapters.ses.deadline import TimedSession, deadline

BODY = b'{"MessageId": "1"}'
SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n" + BODY
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" + BODY[:5] + b"\r\nd\r\n" + BODY[5:]


class Server:
    """Answers each request on its one connection with the next of these bytes, as many at a time."""

    def __init__(self, answers: list[bytes], at_a_time: int = 65_536, *, stays: bool = True) -> None:
        self._answers, self._at_a_time, self._stays = answers, at_a_time, stays
        self.requests: list[bytes] = []
        self.connections = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/v2/x"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        waiting = list(self._answers)
        while waiting:
            connection, _ = self._listening.accept()
            self.connections += 1
            with connection:
                while waiting and (request := connection.recv(65_536)):
                    self.requests.append(request)
                    answer = waiting.pop(0)
                    for first in range(0, len(answer), self._at_a_time):
                        connection.sendall(answer[first : first + self._at_a_time])
                    if not self._stays:
                        break
        self._listening.close()


def ask(session: TimedSession, url: str, body: bytes | None = b"{}"):
    method = "POST" if body else "GET"
    return session.send(AWSRequest(method=method, url=url, data=body, headers={"Host": "x"}).prepare())


@pytest.mark.parametrize("at_a_time", [1, 7, 65_536])
@pytest.mark.parametrize(
    "answer",
    [
        SIZED,
        CHUNKED + b"\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n" + SIZED,
    ],
    ids=["sized", "chunked", "after a go on"],
)
def test_an_answer_is_read_however_it_comes_and_its_connection_used_again(answer, at_a_time):
    server, session = Server([answer, answer], at_a_time), TimedSession()
    for _ in range(2):
        response = ask(session, server.url)
        assert (response.status_code, response.content) == (200, BODY)
        assert "X" not in response.headers
    assert server.connections == 1
    assert all(request.endswith(b"\r\n\r\n{}") for request in server.requests)  # in one piece
    session.close()


@pytest.mark.parametrize(
    ("answer", "stays"),
    [
        (SIZED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), True),
        (SIZED + b"and more", True),
        (SIZED + b"HTTP/1.1 429 Slow\r\nConnection: close\r\n\r\n", True),
        (SIZED + b"HTTP/1.1 100 Continue\r\n\r\n", True),
        (SIZED + b"HTTP/1.1 400 B", True),
        (b"HTTP/1.0 200 OK\r\n\r\n" + BODY, False),
    ],
    ids=["it says close", "noise", "another answer", "a go on", "half an answer", "no length"],
)
def test_a_connection_that_has_ended_is_not_used_again(answer, stays):
    """What comes behind an answer is nobody's: read as its end, an accepted mail would look refused."""
    server, session = Server([answer, answer], stays=stays), TimedSession()
    for _ in range(2):
        response = ask(session, server.url, None)
        assert (response.status_code, response.content) == (200, BODY)
    assert server.connections == 2
    session.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        CHUNKED,
        b"220 mail.example.org ESMTP\r\n",
    ],
)
def test_what_is_no_answer_is_a_lost_connection(answer):
    server, session = Server([answer], stays=False), TimedSession()
    with pytest.raises(ConnectionClosedError):
        ask(session, server.url)
    session.close()


def test_a_body_is_handed_on_as_it_is():
    packed = SIZED.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
    server, session = Server([packed]), TimedSession()
    assert ask(session, server.url).content == BODY
    session.close()


def test_a_proxy_that_trickles_its_answer_ends_with_the_call():
    """One byte at a time, each within a socket's own limit: the thread would outlast its lease."""
    listening = socket.create_server(("127.0.0.1", 0))
    proxy = f"http://127.0.0.1:{listening.getsockname()[1]}"
    over = threading.Event()

    def trickle() -> None:
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(65_536)
            while not over.wait(0.05):
                connection.sendall(b"H")

    threading.Thread(target=trickle, daemon=True).start()
    session = TimedSession(proxies={"https": proxy}, timeout=(60, 60))
    deadline.at = time.monotonic() + 0.5
    try:
        with pytest.raises(HTTPClientError):
            ask(session, "https://email.example.org/v2/x")
    finally:
        deadline.at = None
        over.set()
        session.close()
        listening.close()


def test_an_answer_without_end_is_given_up():
    server, session = Server([b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 4_100_000]), TimedSession()
    with pytest.raises(ConnectionClosedError):
        ask(session, server.url)
    session.close()


def test_a_header_of_two_lines_never_leaves():
    server, session = Server([SIZED]), TimedSession()
    request = AWSRequest(method="POST", url=server.url, data=b"{}", headers={"X": "a\r\nB: c"}).prepare()
    with pytest.raises(HTTPClientError, match="more than one line"):
        session.send(request)
    assert ask(session, server.url).content == BODY
    session.close()
