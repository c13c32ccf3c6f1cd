"""SNS's certificates: fetched once, never through a redirect, and never so often that it hurts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from mailout.adapters.sns_certificates import FETCHES_A_MINUTE, SnsCertificates
from tests.clocks import NOON, FakeClock
from tests.sns_messages import CERTIFICATE_URL, Signer, signer

FILE = CERTIFICATE_URL.rpartition("/")[2]


class Sns(BaseHTTPRequestHandler):
    """A real server: `/moved/…` redirects to the certificate, `/long/…` never ends."""

    asked: list[str]
    hold: threading.Event

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path.startswith("/hangs/"):
            self.hold.wait(60)
        if self.path.startswith("/moved/"):
            self.send_response(302)
            self.send_header("Location", f"/{FILE}")
            self.end_headers()
            return
        self.send_response(404 if self.path.startswith("/lost/") else 200)
        self.end_headers()
        try:
            self.wfile.write(b"x" * 10_000_000 if self.path.startswith("/long/") else signer().pem)
        except ConnectionError:
            return  # the reader had enough

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[str]:
    Sns.asked = []
    running = ThreadingHTTPServer(("127.0.0.1", 0), Sns)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    thread.join()
    running.server_close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def certificates(tmp_path: Path, clock: FakeClock) -> Iterator[SnsCertificates]:
    # A client that would follow redirects: it must be told not to with every request.
    client = httpx.Client(follow_redirects=True, trust_env=False, timeout=60)
    made = SnsCertificates(tmp_path / "certs", clock, client)
    yield made
    made.close()


def test_a_certificate_is_fetched_once(certificates: SnsCertificates, server: str) -> None:
    url = f"{server}/{FILE}"
    assert certificates.known(url) is None
    key = certificates.key(url)
    assert key is not None
    assert (certificates.known(url), certificates.key(url)) == (key, key)
    assert Sns.asked == [f"/{FILE}"]


def test_it_is_kept_in_the_folder_under_its_file_name(
    certificates: SnsCertificates, server: str, tmp_path: Path, clock: FakeClock
) -> None:
    """A restart, or a second gateway, needs no network."""
    certificates.key(f"{server}/{FILE}")
    assert [path.name for path in (tmp_path / "certs").iterdir()] == [FILE]
    another = SnsCertificates(tmp_path / "certs", clock, httpx.Client(trust_env=False))
    assert another.key(CERTIFICATE_URL) is not None
    another.close()
    assert len(Sns.asked) == 1


def test_no_redirect_is_followed(certificates: SnsCertificates, server: str, tmp_path: Path) -> None:
    """Whoever could make SNS's host redirect must not choose our certificate."""
    assert certificates.key(f"{server}/moved/{FILE}") is None
    assert Sns.asked == [f"/moved/{FILE}"]
    assert not (tmp_path / "certs").exists()


@pytest.mark.parametrize("path", ["lost", "long"])
def test_what_is_no_certificate_is_not_kept(
    certificates: SnsCertificates, server: str, tmp_path: Path, path: str
) -> None:
    assert certificates.key(f"{server}/{path}/{FILE}") is None
    assert not (tmp_path / "certs").exists()


def test_a_failure_is_remembered_for_a_moment(
    certificates: SnsCertificates, server: str, clock: FakeClock
) -> None:
    """Who knows our topic's name could otherwise make us call SNS as often as they call us. SNS itself comes
    again after 20 seconds, and only three times."""
    url = f"{server}/lost/{FILE}"
    for _ in range(5):
        assert certificates.key(url) is None
    assert len(Sns.asked) == 1
    clock.sleep(5.0)
    certificates.key(url)
    assert len(Sns.asked) == 2


def test_one_that_failed_holds_back_no_other(
    certificates: SnsCertificates, server: str, clock: FakeClock
) -> None:
    assert certificates.key(f"{server}/lost/{FILE}") is None
    assert certificates.key(f"{server}/{FILE}") is not None


def test_one_host_is_asked_only_so_often_and_another_all_the_same(
    certificates: SnsCertificates, server: str, clock: FakeClock
) -> None:
    for number in range(2 * FETCHES_A_MINUTE):
        certificates.key(f"{server}/lost/{number}/{FILE}")
    assert len(Sns.asked) == FETCHES_A_MINUTE
    assert certificates.key(f"{server}/{FILE}") is None
    assert certificates.key(f"{server.replace('127.0.0.1', 'localhost')}/{FILE}") is not None
    clock.sleep(61.0)
    assert certificates.key(f"{server}/other/{FILE}") is not None


def test_two_regions_are_asked_at_once(certificates: SnsCertificates, server: str) -> None:
    """One that hangs keeps nobody waiting who needs the other."""
    Sns.hold = threading.Event()
    hanging = threading.Thread(target=certificates.key, args=(f"{server}/hangs/{FILE}",))
    hanging.start()
    try:
        assert certificates.key(f"{server}/{FILE}") is not None
        assert hanging.is_alive()
    finally:
        Sns.hold.set()
        hanging.join()


def test_an_unreachable_host_is_no_certificate(tmp_path: Path, clock: FakeClock) -> None:
    certificates = SnsCertificates(tmp_path, clock, httpx.Client(trust_env=False))
    assert certificates.key(f"http://127.0.0.1:9/{FILE}") is None
    certificates.close()


def test_a_certificate_that_has_expired_meanwhile_is_not_believed(
    certificates: SnsCertificates, server: str, clock: FakeClock, tmp_path: Path
) -> None:
    (tmp_path / "certs").mkdir()
    (tmp_path / "certs" / FILE).write_bytes(Signer.make(valid_from=NOON - 86_400 * 3, days=2).pem)
    key = certificates.key(f"{server}/{FILE}")
    assert key is not None
    assert len(Sns.asked) == 1  # the one in the folder would not do
    clock.sleep(400 * 86_400.0)
    assert certificates.known(f"{server}/{FILE}") is None
    assert certificates.key(f"{server}/{FILE}") is None
