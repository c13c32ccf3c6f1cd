"""What leaves without boto3 is what boto3 would have sent: there, signed so, and to nobody else."""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from mailout.adapters.ses import SesMode
from mailout.base.errors import SettingsError
from mailout.outbox.delivery.protocol import OutcomeKind
from tests.contract.ses.letters import mail, one
from tests.contract.ses.servers import Authority, Server, field

AWS = "email.us-east-1.amazonaws.com"
Serve = Callable[..., Server]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[Server] = []

    def start(*args: Any, **named: Any) -> Server:
        servers.append(Server(*args, **named))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def trusted(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Authority:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority.bundle))
    return authority


# ── as boto3 signs ──


class Boto3:
    """boto3's own client: what it would have handed to its HTTP session for a body of ours."""

    def __init__(self, url: str, mode: SesMode) -> None:
        self._client = boto3.session.Session().client("sesv2", endpoint_url=url)
        self._mode = mode
        self._client.meta.events.register("before-call.sesv2", self._same_body)
        self._client.meta.events.register_first("before-sign.sesv2", self._without_counters)
        self._client.meta.events.register("before-send.sesv2", self._keep)

    def signs(self, body: bytes) -> Any:
        self._body = body
        single = self._mode is SesMode.SINGLE
        bulk: dict[str, Any] = {"DefaultContent": {}, "BulkEmailEntries": []}
        with pytest.raises(InterruptedError):
            self._client.send_email(Content={}) if single else self._client.send_bulk_email(**bulk)
        return self._seen

    def _same_body(self, params: dict[str, Any], **_: Any) -> None:
        params["body"] = self._body

    def _without_counters(self, request: Any, **_: Any) -> None:
        """They number boto3's own retries, of which we have none."""
        for name in ("amz-sdk-invocation-id", "amz-sdk-request"):
            del request.headers[name]

    def _keep(self, request: Any, **_: Any) -> Any:
        self._seen = request
        raise InterruptedError


@pytest.mark.parametrize("mode", [SesMode.SINGLE, SesMode.BULK])
@pytest.mark.parametrize("token", [None, "a token/with+signs=="])
@pytest.mark.parametrize("region", ["us-east-1", "eu-central-2", "us-gov-west-1"])
@pytest.mark.parametrize("place", ["", "/below/~a.path", "/%C3%A4"])
def test_a_request_is_signed_as_boto3_signs_it(
    mode, token, region, place, serve, open_transport, monkeypatch
):
    """A signature that SES does not accept stops every mailout."""
    moment = datetime.datetime(2026, 11, 15, 23, 59, 59, tzinfo=datetime.UTC)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda *_: moment)
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    if token:
        monkeypatch.setenv("AWS_SESSION_TOKEN", token)
    server = serve()
    url = f"http://LocalHost:{server.port}{place}"
    transport = open_transport(mode, endpoint_url=url)
    names = ["Reader", "Читатель", "a" * 70_000, "half a character \ud800", '"\\ \u2028\x00']
    for number, name in enumerate(names):
        values = {**mail(number).values, "name": name}
        transport.send([mail(number, values=values)])
    assert len(server.requests) == len(names)
    boto3s = Boto3(url, mode)
    for sent in server.requests:
        theirs = boto3s.signs(sent.partition(b"\r\n\r\n")[2])
        for header in ("Authorization", "X-Amz-Date", "X-Amz-Security-Token", "Content-Type"):
            value = theirs.headers.get(header, "")
            assert field(sent, header) == (value if isinstance(value, str) else value.decode())
        assert field(sent, "Host") == f"localhost:{server.port}"
        assert sent.split(b" ")[1].decode() == theirs.url.removeprefix(f"http://LocalHost:{server.port}")


def test_renewed_credentials_sign_the_next_request(serve, open_transport, monkeypatch, tmp_path: Path):
    """A role's keys last an hour: with the old ones a long mailout would stop half way."""
    made, now = tmp_path / "made", datetime.datetime.now(datetime.UTC)
    soon = (now + datetime.timedelta(minutes=5)).isoformat()  # boto3 renews what ends within ten minutes
    script = tmp_path / "keys.py"
    script.write_text(
        f"import json, pathlib\nmade = pathlib.Path({str(made)!r})\n"
        "n = len(made.read_text()) + 1 if made.exists() else 1\nmade.write_text('x' * n)\n"
        "print(json.dumps({'Version': 1, 'AccessKeyId': f'KEY{n}', 'SecretAccessKey': 's',"
        f" 'SessionToken': f'token-{{n}}', 'Expiration': {soon!r}}}))\n"
    )
    config = tmp_path / "config"
    config.write_text(f"[default]\ncredential_process = {sys.executable} {script}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    server = serve()
    transport = open_transport(endpoint_url=f"http://127.0.0.1:{server.port}")
    for number in range(2):
        assert one(transport.send([mail(number)])).kind is OutcomeKind.SENT
    keys = [
        field(sent, "Authorization").partition("Credential=")[2].split("/")[0] for sent in server.requests
    ]
    tokens = [field(sent, "X-Amz-Security-Token") for sent in server.requests]
    assert len(set(keys)) == 2
    assert tokens == [key.replace("KEY", "token-") for key in keys]


# ── where boto3 would send it ──


@pytest.mark.parametrize(
    ("environment", "host"),
    [
        ({}, AWS),
        ({"AWS_USE_FIPS_ENDPOINT": "true"}, "email-fips.us-east-1.amazonaws.com"),
        ({"AWS_USE_DUALSTACK_ENDPOINT": "true"}, "email.us-east-1.api.aws"),
        ({"AWS_DEFAULT_REGION": "cn-north-1"}, "email.cn-north-1.amazonaws.com.cn"),
        ({"AWS_ENDPOINT_URL": "https://ses.example.org"}, "ses.example.org"),
    ],
    ids=["plain", "FIPS", "dual-stack", "China", "own endpoint"],
)
def test_mail_goes_to_the_address_that_boto3_finds_through_the_proxy_that_is_set(
    environment, host, serve, trusted, open_transport, monkeypatch
):
    proxy = serve(trusted.server_context(host), is_proxy=True)
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:s%20ecret@127.0.0.1:{proxy.port}")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    transport = open_transport(endpoint_url=None)
    for number in range(2):
        assert one(transport.send([mail(number)])).kind is OutcomeKind.SENT
    (tunnel,) = proxy.tunnels  # one connection for both
    assert tunnel.startswith(b"CONNECT %s:443 HTTP/1.1\r\n" % host.encode())
    assert field(tunnel, "Proxy-Authorization") == "Basic dXNlcjpzIGVjcmV0"
    assert [field(sent, "Host") for sent in proxy.requests] == [host] * 2
    assert all(b"Proxy-Authorization" not in sent for sent in proxy.requests)


def test_a_proxy_that_is_itself_reached_by_tls(serve, trusted, open_transport, monkeypatch):
    proxy = serve(trusted.server_context(AWS), is_proxy=True, proxy_tls=trusted.server_context("127.0.0.1"))
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.setenv("HTTPS_PROXY", f"https://127.0.0.1:{proxy.port}")
    assert one(open_transport(endpoint_url=None).send([mail()])).kind is OutcomeKind.SENT
    assert [field(sent, "Host") for sent in proxy.requests] == [AWS]


def test_a_plain_proxy_is_told_the_whole_address(serve, open_transport, monkeypatch):
    proxy = serve()
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.setenv("HTTP_PROXY", f"http://user:secret@127.0.0.1:{proxy.port}")
    transport = open_transport(endpoint_url="http://ses.example.org:8080")
    assert one(transport.send([mail()])).kind is OutcomeKind.SENT
    (sent,) = proxy.requests
    assert sent.startswith(b"POST http://ses.example.org:8080/v2/email/outbound-emails HTTP/1.1\r\n")
    assert field(sent, "Host") == "ses.example.org:8080"
    assert field(sent, "Proxy-Authorization")


def test_a_proxy_that_refuses_is_surely_not_sent(serve, open_transport, monkeypatch):
    proxy = serve(is_proxy=True, tunnel_answer=b"HTTP/1.1 407 Who are you?\r\nContent-Length: 0\r\n\r\n")
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
    outcome = one(open_transport(endpoint_url=None).send([mail()]))
    assert (outcome.kind, outcome.code) == (OutcomeKind.TRANSIENT, "NETWORK_ERROR")
    assert "407" in (outcome.message or "")


# ── whom it believes ──


def test_your_own_certificate_authority_is_believed(serve, trusted, open_transport):
    server = serve(trusted.server_context("127.0.0.1"))
    transport = open_transport(endpoint_url=f"https://127.0.0.1:{server.port}")
    for number in range(2):
        assert one(transport.send([mail(number)])).kind is OutcomeKind.SENT
    assert json.loads(server.requests[1].partition(b"\r\n\r\n")[2])["Destination"] == {
        "ToAddresses": ["reader-1@example.org"]
    }


@pytest.mark.parametrize("wrong", ["authority", "name", "expired"])
def test_a_server_with_a_wrong_certificate_gets_nothing(wrong, serve, trusted, open_transport, tmp_path):
    """Whoever is in between would read every address, and answer as if the mail had been sent."""
    issuer = Authority(tmp_path, "somebody else") if wrong == "authority" else trusted
    host = "10.0.0.1" if wrong == "name" else "127.0.0.1"
    server = serve(issuer.server_context(host, days=-1 if wrong == "expired" else 1))
    transport = open_transport(endpoint_url=f"https://127.0.0.1:{server.port}")
    outcome = one(transport.send([mail()]))
    assert (outcome.kind, outcome.code) == (OutcomeKind.TRANSIENT, "NETWORK_ERROR")
    assert "CERTIFICATE_VERIFY_FAILED" in (outcome.message or "")
    assert server.requests == []


def test_a_ca_bundle_that_is_not_there_is_named_before_anything_is_sent(open_transport, monkeypatch):
    monkeypatch.setenv("AWS_CA_BUNDLE", "/nowhere/ca.pem")
    with pytest.raises(SettingsError, match="/nowhere/ca"):
        open_transport(endpoint_url=f"https://{AWS}")


def test_a_header_of_two_lines_is_never_written(serve, open_transport, monkeypatch):
    """A token pasted with its line break could add a header, or a second request."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a\r\nX-Other: b")
    server = serve()
    outcome = one(open_transport(endpoint_url=f"http://127.0.0.1:{server.port}").send([mail()]))
    assert outcome.kind is OutcomeKind.STOP
    assert server.requests == []
