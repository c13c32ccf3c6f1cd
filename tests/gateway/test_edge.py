"""The gateway against the rest of the world: slow, many, forged, and impatient clients."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import starlette.requests

from gateway.refusals import LINES_PER_MINUTE, RefusalLog
from gateway.server import (
    FILES_FOR_OURSELVES,
    MOST_HEADER_BYTES,
    LimitedProtocol,
    ServerLimits,
    SlowReader,
    site_of,
)
from gateway.wrong_passwords import MOST_FROM_ONE
from mailout.adapters.sqlite import SqliteStore
from mailout.outbox.queue.port import Request
from tests.clocks import FakeClock
from tests.gateway.conftest import Open
from tests.ports import free_port

TOKEN = "the token of these tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
PATIENCE = 300.0
HALF = b"GET /health HTTP/1.1\r\nHost: x\r\n"


def connect(gateway: httpx.Client) -> socket.socket:
    host, port = gateway.base_url.host, gateway.base_url.port
    assert port is not None
    return socket.create_connection((host, port), timeout=PATIENCE)


def all_of(connection: socket.socket) -> bytes:
    """Until the server closes; a reset is a close, too."""
    told = b""
    with suppress(ConnectionError):
        while part := connection.recv(4096):
            told += part
    return told


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING, logger="mailout.gateway"):
        yield caplog


# ── Deadlines ──


@pytest.mark.parametrize(
    "begun",
    [
        b"G",
        HALF,
        b"POST /unsubscribe HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nList",
        b"POST /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello",
    ],
)
def test_a_request_that_does_not_arrive_is_ended(open_gateway: Open, begun: bytes) -> None:
    gateway = open_gateway(limits=ServerLimits(request_seconds=0.2))
    with connect(gateway) as slow:
        slow.sendall(begun)
        told = all_of(slow)
    # What is answered before it is all there (404) is not answered a second time.
    assert told.startswith(b"HTTP/1.1 404" if b"/nowhere" in begun else b"HTTP/1.1 408")
    assert told.count(b"HTTP/1.1") == 1


def test_a_byte_now_and_then_does_not_keep_it_alive(open_gateway: Open) -> None:
    gateway = open_gateway(limits=ServerLimits(request_seconds=0.3))
    with connect(gateway) as slow:
        slow.sendall(HALF)
        ended = threading.Event()

        def trickle() -> None:
            with suppress(OSError):
                while not ended.wait(0.02):
                    slow.sendall(b"X-A: b\r\n")

        thread = threading.Thread(target=trickle)
        thread.start()
        all_of(slow)
        ended.set()
        thread.join()


def test_who_connects_and_says_nothing_is_let_go(open_gateway: Open) -> None:
    gateway = open_gateway(limits=ServerLimits(request_seconds=0.2))
    with connect(gateway) as silent:
        assert all_of(silent) == b""


def test_the_deadline_is_for_the_request_and_not_for_its_answer(
    open_gateway: Open, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "check", lambda: time.sleep(1.2))
    gateway = open_gateway(limits=ServerLimits(request_seconds=1.0))
    for _ in range(2):  # the second on the same connection
        assert gateway.get("/health").status_code == 200


def test_an_answer_that_takes_too_long_is_a_503_before_sns_gives_up(
    open_gateway: Open, store: SqliteStore, monkeypatch: pytest.MonkeyPatch, said: pytest.LogCaptureFixture
) -> None:
    hold = threading.Event()
    monkeypatch.setattr(store, "check", lambda: hold.wait(PATIENCE))
    gateway = open_gateway(answer_seconds=1.0)
    try:
        late = gateway.get("/health")
    finally:
        hold.set()
    assert (late.status_code, late.headers["retry-after"]) == (503, "10")
    assert late.json() == {"error": "try again later"}
    assert "GET /health refused (503): it took too long" in said.text
    assert gateway.get("/health").status_code == 200


def test_a_stream_goes_on_after_the_deadline_of_answers(open_gateway: Open, store: SqliteStore) -> None:
    gateway = open_gateway(api_token=TOKEN, answer_seconds=1.5, limits=ServerLimits(request_seconds=1.5))
    with gateway.stream("GET", "/mail/progress/stream", headers=BEARER) as answer:
        told = (line for line in answer.iter_lines() if line.startswith("data: "))
        next(told)
        time.sleep(1.6)
        store.ask(Request("letter.md"), repeat=0)
        assert "letter.md" in next(told)


def test_an_app_that_answers_after_its_503_is_not_heard(
    open_gateway: Open, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold, over = threading.Event(), threading.Event()

    def slow() -> None:
        hold.wait(PATIENCE)
        over.set()

    monkeypatch.setattr(store, "check", slow)
    gateway = open_gateway(answer_seconds=0.2)
    with connect(gateway) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        told = client.recv(4096)
        hold.set()
        assert over.wait(PATIENCE)
        told += all_of(client)
    assert told.startswith(b"HTTP/1.1 503")
    assert told.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    "endless",
    [
        b"GET /health HTTP/1.1\r\nHost: x\r\nX-A: ",  # one header
        b"GET /",  # the address
        b"POST /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: ",  # a trailer
    ],
)
def test_headers_without_an_end_are_refused(open_gateway: Open, endless: bytes) -> None:
    """The parser would keep them all; nothing else limits what comes before a body."""
    gateway = open_gateway(limits=ServerLimits(request_seconds=PATIENCE))
    with connect(gateway) as client, suppress(ConnectionError):
        client.sendall(endless)
        for _ in range(200):
            client.sendall(b"a" * MOST_HEADER_BYTES)
        raise AssertionError("13 MB of headers were taken")


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /health HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost:\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a/b@c\r\n\r\n",
        b"GET /health HTTP/1.0\r\n\r\n",
        b"GET /health HTTP/0.9\r\nHost: a\r\n\r\n",
        b"GET /health\r\n\r\n",
    ],
)
def test_a_request_that_a_proxy_could_understand_otherwise_is_refused(open_gateway: Open, raw: bytes) -> None:
    with connect(open_gateway()) as client:
        client.sendall(raw)
        assert all_of(client).startswith(b"HTTP/1.1 400")


def test_who_does_not_read_an_answer_is_cut_off(
    open_gateway: Open, tmp_path: Path, said: pytest.LogCaptureFixture
) -> None:
    """30 MB a connection that nobody reads would hold memory and files for as long as somebody likes."""
    name = "0" * 64 + ".png"
    (tmp_path / "media").mkdir()
    with (tmp_path / "media" / name).open("wb") as file:
        file.truncate(30_000_000)
    limits = ServerLimits(stalled_seconds=0.3)
    gateway = open_gateway(limits=limits)
    with connect(gateway) as idle:
        idle.sendall(f"GET /media/{name} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert idle.recv(1) == b"H"
        for _ in range(int(PATIENCE * 100)):
            if not limits.held.total():
                break
            time.sleep(0.01)
        assert not limits.held.total()
        assert len(all_of(idle)) < 30_000_000
    assert "it did not read its answer" in said.text


def test_a_slow_reader_keeps_its_connection_as_long_as_it_takes_something() -> None:
    """Else a picture would never arrive over a bad connection."""
    waiting, looks, cut = [0], list[Callable[[], None]](), list[bool]()

    class Transport:
        def get_write_buffer_size(self) -> int:
            return waiting[0]

    def later(seconds: float, look: Callable[[], None]) -> Any:
        looks.append(look)

    reader = SlowReader(Transport(), later, 15.0, lambda: cut.append(True))  # type: ignore[arg-type]
    for size in (0, 0, 60_000, 59_999, 20_000, 1):
        waiting[0] = size
        looks.pop()()
    reader.took_some()  # all of it, and more was written
    for size in (60_000, 59_000):
        waiting[0] = size
        looks.pop()()
    assert not cut
    looks.pop()()
    assert cut
    assert not looks, "it is looked at no more"


def test_a_cookie_of_somebody_elses_that_is_too_long_is_not_read(
    open_gateway: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    parse = starlette.requests.cookie_parser
    monkeypatch.setattr(starlette.requests, "cookie_parser", lambda text: read.append(text) or parse(text))
    gateway = open_gateway(admin_password="the administrator's words")
    for name in ("a", "mailout_a"):
        assert gateway.get("/login", headers={"Cookie": f"{name}={'b' * 5_000}"}).status_code == 200
        assert gateway.get("/login", headers=[("Cookie", f"{name}={'b' * 2_500}")] * 2).status_code == 200
    assert read == []
    assert gateway.get("/login", headers={"Cookie": "mailout_a=" + "b" * 2_500}).status_code == 200
    assert read


def test_cookies_of_other_pages_of_the_domain_keep_nobody_from_signing_in(open_gateway: Open) -> None:
    """A consent banner on example.org sets its cookies for mail.example.org, too."""
    gateway = open_gateway(admin_password="the administrator's words")
    gateway.post("/login", data={"password": "the administrator's words"})
    session = f"mailout_session={gateway.cookies['mailout_session']}"
    gateway.cookies.clear()
    theirs = "_consent=" + "a" * 6_000
    for sent in (f"{session}; {theirs}", f"{theirs}; {session}", f"{theirs};{session};b=c"):
        assert gateway.get("/", headers={"Cookie": sent}).status_code == 200, sent[:20]
    assert gateway.get("/", headers=[("Cookie", theirs), ("Cookie", session)]).status_code == 200
    ours = "mailout_x=" + "a" * 4_100
    assert gateway.get("/", headers={"Cookie": f"{session}; {ours}"}).status_code == 303


def test_answers_leave_at_once(open_gateway: Open) -> None:
    """Headers and body are two writes: without TCP_NODELAY the second waits 40 ms for an acknowledgement."""
    seen: list[int] = []
    made = LimitedProtocol.connection_made

    def noted(self: LimitedProtocol, transport: asyncio.Transport) -> None:
        made(self, transport)
        found = transport.get_extra_info("socket")
        seen.append(found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LimitedProtocol, "connection_made", noted)
        assert open_gateway().get("/health").status_code == 200
    assert seen
    assert all(seen)


# ── Connections ──


def test_one_address_holds_only_so_many_connections(
    open_gateway: Open, said: pytest.LogCaptureFixture
) -> None:
    gateway = open_gateway(limits=ServerLimits(per_address=3))
    with ExitStack() as held:
        for _ in range(3):
            held.enter_context(connect(gateway)).sendall(HALF)
        for _ in range(5):
            with connect(gateway) as refused:
                assert all_of(refused).startswith(b"HTTP/1.1 503")
    assert said.text.count("too many connections from it") == 1, "a line a minute"
    for _ in range(int(PATIENCE * 100)):  # as soon as they are gone
        if gateway.get("/health").status_code == 200:
            break
        time.sleep(0.01)
    assert gateway.get("/health").status_code == 200


def test_connections_of_a_trusted_proxy_are_many_peoples(open_gateway: Open) -> None:
    limits = ServerLimits(per_address=1, trusted=["127.0.0.0/8"])
    gateway = open_gateway(limits=limits, trusted_proxies="127.0.0.0/8")
    with connect(gateway), connect(gateway):
        assert gateway.get("/health").status_code == 200


def test_every_connection_is_given_back(open_gateway: Open) -> None:
    limits = ServerLimits()
    gateway = open_gateway(limits=limits)
    for n in range(20):
        with connect(gateway) as one:
            one.sendall(b"nonsense\r\n\r\n" if n % 2 else HALF)
    assert gateway.get("/health").status_code == 200
    for _ in range(int(PATIENCE * 100)):
        if limits.held.total() <= 1:  # our own
            break
        time.sleep(0.01)
    assert limits.held.total() <= 1


@pytest.mark.parametrize(
    ("address", "site"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "unknown"),
        (None, "unknown"),
    ],
)
def test_one_customer_is_one_address(address: str | None, site: str) -> None:
    assert site_of(address) == site


@pytest.mark.parametrize("files", [64, 256, 1024, 1_000_000])
def test_there_are_always_files_left_for_the_store(files: int) -> None:
    limits = ServerLimits.for_files(files)
    assert limits.connections <= max(8, files - FILES_FOR_OURSELVES)
    assert limits.per_address < limits.connections


@pytest.mark.parametrize("addresses", [1, 5])
def test_300_half_open_connections_against_256_files(tmp_path: Path, addresses: int) -> None:
    """From one address it costs nobody else anything; from several it goes on when they are gone."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 600:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), hard))
    port = free_port()
    said = tmp_path / "said"
    env = {"PATH": os.environ["PATH"], "MAILOUT_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    with said.open("wb") as file, ExitStack() as held:
        few = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))"
        run = "import sys; from cli.main import main; main(['gateway', '--port', sys.argv[1]])"
        process = subprocess.Popen(
            [sys.executable, "-c", f"{few}; {run}", str(port)], stdout=file, stderr=file, env=env
        )
        held.callback(process.wait)
        held.callback(process.terminate)
        health = f"http://127.0.0.1:{port}/health"
        assert answered(health, process)
        attack = held.enter_context(ExitStack())
        for n in range(300):
            with suppress(ConnectionError):
                source = (f"127.0.0.{2 + n % addresses}", 0)
                one = socket.create_connection(("127.0.0.1", port), PATIENCE, source_address=source)
                attack.enter_context(one).sendall(HALF)
        all_of(one)  # the last one is refused: the server has met them all
        if addresses > 1:
            attack.close()
        assert answered(health, process)
    told = said.read_text()
    assert "too many connections" in told
    assert "Traceback" not in told
    assert len(told) < 5000


def answered(url: str, process: subprocess.Popen[bytes]) -> bool:
    for _ in range(int(PATIENCE / 0.1)):
        assert process.poll() is None
        with suppress(httpx.TransportError):
            if httpx.get(url, trust_env=False, timeout=PATIENCE).status_code == 200:
                return True
        time.sleep(0.1)
    return False


# ── Tokens and addresses ──


def test_wrong_tokens_are_limited_by_address_and_logged_once(
    open_gateway: Open, said: pytest.LogCaptureFixture
) -> None:
    gateway = open_gateway(api_token=TOKEN, trusted_proxies="127.0.0.1")

    def ask(token: str, address: str) -> int:
        headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": address}
        return gateway.get("/mail/progress/poll/", headers=headers).status_code

    assert [ask("wrong", "192.0.2.1") for _ in range(MOST_FROM_ONE)] == [401] * MOST_FROM_ONE
    assert ask("wrong", "192.0.2.1") == 429
    assert ask("wrong", "192.0.2.2") == 401, "somebody else"
    assert ask(TOKEN, "192.0.2.1") == 200, "the owner is not locked out"
    assert said.text.count("wrong token") == 1


def test_a_refusal_by_429_says_when_to_come_again(open_gateway: Open) -> None:
    gateway = open_gateway(api_token=TOKEN)
    for _ in range(MOST_FROM_ONE):
        gateway.get("/metrics")
    limited = gateway.get("/metrics")
    assert limited.status_code == 429
    assert 1 <= int(limited.headers["retry-after"]) <= 60


def test_nobody_is_believed_who_only_says_where_he_is_from(open_gateway: Open) -> None:
    """Without TRUSTED_PROXIES the header is anybody's: a limit by address would be none."""
    gateway = open_gateway(api_token=TOKEN)
    codes = {
        gateway.get("/metrics", headers={"X-Forwarded-For": f"192.0.2.{n}"}).status_code
        for n in range(MOST_FROM_ONE + 1)
    }
    assert codes == {401, 429}


# ── Headers, redirects, the log ──


@pytest.mark.parametrize(
    "path", ["/health", "/nowhere", "/unsubscribe?token=x", "/metrics", "/openapi.json", "/media/x"]
)
def test_every_answer_has_its_security_headers(open_gateway: Open, path: str) -> None:
    headers = open_gateway().get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert len(headers.get_list("content-security-policy")) == 1
    assert "strict-transport-security" not in headers


def test_an_error_of_ours_has_them_too(
    open_gateway: Open, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(store, "check", broken)
    answer = open_gateway().get("/health")
    assert (answer.status_code, answer.json()) == (500, {"error": "internal error"})
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_behind_a_proxy_with_tls_browsers_stay_with_tls(open_gateway: Open) -> None:
    gateway = open_gateway(trusted_proxies="127.0.0.1")
    assert (
        "strict-transport-security" in gateway.get("/health", headers={"X-Forwarded-Proto": "https"}).headers
    )


@pytest.mark.parametrize("path", ["/health/", "/unsubscribe/", "/mail/progress/stream/", "//evil.example/"])
def test_no_redirect_leads_to_a_host_that_the_request_names(open_gateway: Open, path: str) -> None:
    answer = open_gateway(api_token=TOKEN).get(path, headers={"Host": "evil.example", **BEARER})
    assert answer.status_code == (403 if path == "//evil.example/" else 404)  # the dashboard, which is closed
    assert "location" not in answer.headers
    assert "evil" not in str(answer.headers)


def test_the_poll_needs_no_slash(open_gateway: Open) -> None:
    assert open_gateway(api_token=TOKEN).get("/mail/progress/poll", headers=BEARER).status_code == 200


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/unsubscribe", "GET, POST"),
        ("/v1/recipients/x", "DELETE, GET, PUT"),
        ("/health", "GET, HEAD"),
    ],
)
def test_who_uses_a_wrong_method_is_told_all_that_there_are(
    open_gateway: Open, path: str, allowed: str
) -> None:
    answer = open_gateway().patch(path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize("path", ["/health", "/join"])
def test_who_looks_whether_it_is_there_gets_the_head_alone(open_gateway: Open, path: str) -> None:
    """Monitors ask so."""
    gateway = open_gateway(signup=True, public_url="https://mail.example.org")
    head, whole = gateway.head(path), gateway.get(path)
    assert (head.status_code, head.content) == (200, b"")
    for name in ("content-type", "content-length"):
        assert head.headers[name] == whole.headers[name]


@pytest.mark.parametrize(
    "path", ["/join/", "/archive/", "/preferences/", "/nope", "/media/x", "/articles/x?skip=y"]
)
def test_who_comes_with_a_browser_gets_a_page_and_no_json(open_gateway: Open, path: str) -> None:
    gateway = open_gateway(public_url="https://mail.example.org", admin_password="the administrator's words")
    gateway.post("/login", data={"password": "the administrator's words"})
    answer = gateway.get(path, headers={"accept": "text/html,*/*;q=0.8", "accept-language": "de"})
    assert answer.status_code in (404, 422)
    assert answer.headers["content-type"].startswith("text/html")
    assert "Diese Seite gibt es nicht" in answer.text
    assert "noindex" in answer.headers["x-robots-tag"]
    plain = gateway.get(path)
    assert (plain.status_code, list(plain.json())) == (answer.status_code, ["error"])


def test_the_api_answers_in_its_own_way_also_to_a_browser(open_gateway: Open) -> None:
    answer = open_gateway().get("/v1/nope", headers={"accept": "text/html"})
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")


def test_every_refusal_writes_its_line_and_none_writes_two(
    open_gateway: Open, said: pytest.LogCaptureFixture
) -> None:
    gateway = open_gateway(api_token=TOKEN)
    gateway.get("/no%0Awhere")
    gateway.get("/unsubscribe?token=leaves")
    gateway.post("/ses-events", content=b"x")
    gateway.post("/webhooks/notion", content=b"{}")
    gateway.post("/webhooks/notion", content=b"x")
    gateway.post("/unsubscribe", content=b"x" * 100_000)
    gateway.delete("/health")
    gateway.post("/send-mailout", json={}, headers=BEARER)
    gateway.post("/mailouts/x/settle", json={}, headers=BEARER)
    lines = [record.getMessage() for record in said.records if record.name == "mailout.gateway"]
    assert [line.partition(":")[0] for line in lines] == [
        "GET '/no\\nwhere' refused (404)",
        "GET /unsubscribe refused (400)",
        "POST /ses-events refused (403)",
        "POST /webhooks/notion refused (403)",
        "POST /webhooks/notion refused (400)",
        "POST /unsubscribe refused (413)",
        "DELETE /health refused (405)",
        "POST /send-mailout refused (400)",
        "POST /mailouts/x/settle refused (422)",
    ]
    assert lines[2].endswith("not JSON"), "with the reason"
    assert "leaves" not in said.text


def test_nobody_can_fill_the_log(said: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    log = RefusalLog(clock.monotonic)
    for _ in range(1000):
        log.request("GET", "/x" * 1000, 404, "not found")
    assert len(said.records) == LINES_PER_MINUTE
    clock.sleep(61)
    log.request("GET", "/x", 404, "not found")
    assert (
        said.messages[-1]
        == f"GET /x refused (404): not found ({1000 - LINES_PER_MINUTE} more like it before)"
    )


def test_a_reason_with_somebody_elses_words_stays_one_short_line(said: pytest.LogCaptureFixture) -> None:
    """The name of a field that is not known stands in it, as the caller wrote it."""
    RefusalLog().request("POST", "/v1/email/send", 400, "a\n2026-11-15 INFO all is well: not known")
    RefusalLog().request("POST", "/v1/email/send", 400, "x" * 10_000)
    first, second = said.messages
    assert "\n" not in first
    assert len(second) < 1_000
