"""What comes back over the wire, byte by byte if it must be."""

import contextlib
import socket
import threading

import pytest

from mailout.adapters.ses.connections import Answer, Call, Connections, NotConnectedError
from mailout.base.clock import monotonic

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


def connections_to(url: str) -> Connections:
    return Connections(url, ca_bundle=None, connect_limit=5.0, max_idle=20.0)


def ask(connections: Connections, seconds: float = 30.0) -> Answer:
    head = connections.request_lines("/v2/x")
    request = "\r\n".join([*head, "Host: x", "Content-Length: 2", "", "{}"]).encode()
    return connections.exchange(request, Call(monotonic() + seconds))


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


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
    server = Server([answer, answer], at_a_time)
    connections = connections_to(server.url)
    for _ in range(2):
        response = ask(connections)
        assert (response.status, response.body) == (200, BODY)
        assert "x" not in response.headers
    assert server.connections == 1
    assert all(request.endswith(b"\r\n\r\n{}") for request in server.requests)  # in one piece
    connections.close()


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
    server = Server([answer, answer], stays=stays)
    connections = connections_to(server.url)
    for _ in range(2):
        response = ask(connections)
        assert (response.status, response.body) == (200, BODY)
    assert server.connections == 2
    connections.close()


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
    connections = connections_to(Server([answer], stays=False).url)
    with pytest.raises(ConnectionError):
        ask(connections)
    connections.close()


def test_a_body_is_handed_on_as_it_is():
    packed = SIZED.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
    connections = connections_to(Server([packed]).url)
    assert ask(connections).body == BODY
    connections.close()


def test_a_proxy_that_trickles_its_answer_ends_with_the_call(monkeypatch):
    """One byte at a time, each within a socket's own limit: the thread would outlast its lease."""
    listening = socket.create_server(("127.0.0.1", 0))
    proxy = f"http://127.0.0.1:{listening.getsockname()[1]}"
    over = threading.Event()

    def trickle() -> None:
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            while not over.wait(0.05):
                connection.sendall(b"y")

    threading.Thread(target=trickle, daemon=True).start()
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    monkeypatch.delenv("NO_PROXY")
    connections = connections_to("https://email.example.org/v2/x")
    try:
        with pytest.raises(NotConnectedError, match="timed out"):
            ask(connections, seconds=0.5)
    finally:
        over.set()
        listening.close()


def test_an_answer_without_end_is_given_up():
    connections = connections_to(Server([b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 4_100_000]).url)
    with pytest.raises(ConnectionError):
        ask(connections)
    connections.close()
