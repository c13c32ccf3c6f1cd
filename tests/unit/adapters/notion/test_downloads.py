"""Files that Notion hosts: whole, in time and of a bearable size, or an error with a reason."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from mailout.adapters.notion.downloads import download
from mailout.base.errors import SourceUnavailable
from tests.unit.adapters.notion.conftest import TestClock


class Host(BaseHTTPRequestHandler):
    """Answers by the path: `/STATUS,STATUS,…/SIZE`, one status a call."""

    seen: dict[str, int]

    def do_GET(self) -> None:
        _, statuses, size = self.path.split("/")
        call = self.seen[self.path] = self.seen.get(self.path, -1) + 1
        answers = statuses.split(",")
        status = int(answers[min(call, len(answers) - 1)])
        body = b"x" * int(size)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    handler = type("Seen", (Host,), {"seen": {}})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def test_a_file_comes_whole(host: str) -> None:
    assert download(f"{host}/200/70000", clock=TestClock()) == b"x" * 70_000


def test_a_host_that_stumbles_is_asked_again(host: str) -> None:
    clock = TestClock()
    assert download(f"{host}/503,429,200/3", clock=clock) == b"xxx"
    assert clock.slept == [1.0, 3.0]


@pytest.mark.parametrize(
    ("answers", "error", "calls"),
    [
        ("404", OSError, 0),
        ("302", OSError, 0),
        ("403", SourceUnavailable, 0),  # it has another address when the page is read again
        ("500", SourceUnavailable, 2),
        ("429", SourceUnavailable, 2),
    ],
)
def test_a_file_that_cannot_be_had_is_an_error_with_the_answer(
    host: str, answers: str, error: type[Exception], calls: int
) -> None:
    clock = TestClock()
    with pytest.raises(error, match=answers):
        download(f"{host}/{answers}/1", clock=clock)
    assert len(clock.slept) == calls


def test_a_file_too_large_is_not_read_to_its_end(host: str) -> None:
    with pytest.raises(OSError, match="larger than 1 MB"):
        download(f"{host}/200/3000000", clock=TestClock(), max_bytes=2**20)


def test_nobody_at_home_may_pass() -> None:
    with pytest.raises(SourceUnavailable, match="no answer"):
        download("http://127.0.0.1:9/x", clock=TestClock())
