"""What strangers may cost: no request of theirs holds the gateway, and none ends it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.strangers import Gateway, running_gateway

MOST_CPU_SECONDS = 0.5
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"
JSON = b"Content-Type: application/json\r\n"
MULTIPART = b"Content-Type: multipart/form-data; boundary=x\r\n"
MANY_KEYS = b"{" + b",".join(b'"k%d":1' % n for n in range(80_000)) + b"}"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running_gateway(tmp_path_factory.mktemp("gateway")) as running:
        yield running


def part(header: bytes, body: bytes = b"v") -> bytes:
    return b"--x\r\nContent-Disposition: form-data; " + header + b"\r\n\r\n" + body + b"\r\n--x--\r\n"


def nested(depth: int) -> bytes:
    body = b""
    for n in range(depth):
        body += b"--b%d\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n" % (n, n + 1)
    return body


ATTACKS = {
    "a part header of semicolons": ("POST", "/login", MULTIPART, part(b"name=a" + b";" * 60_000)),
    "a content type of semicolons": (
        "POST",
        "/login",
        b"Content-Type: multipart/form-data; boundary=x" + b";" * 40_000 + b"\r\n",
        part(b'name="a"'),
    ),
    "parts in parts": (
        "POST",
        "/login",
        b"Content-Type: multipart/form-data; boundary=b0\r\n",
        nested(1_500)[:64_000],
    ),
    "many keys without a password": ("POST", "/articles/send", JSON, MANY_KEYS),
    "many keys with a wrong password": (
        "POST",
        "/articles/send",
        JSON + b"Authorization: Bearer wrong\r\n",
        MANY_KEYS,
    ),
    "many keys for a mailout that is to pause": ("POST", "/mailouts/x/pause", JSON, MANY_KEYS),
    "many keys for what is to be settled": ("POST", "/mailouts/x/settle", JSON, MANY_KEYS),
    "many keys in the name of Notion": ("POST", "/webhooks/notion", JSON, MANY_KEYS),
    "a cookie of backslashes": ("GET", "/", b'Cookie: a="' + b"\\" * 60_000 + b'"\r\n', b""),
    "many cookies of backslashes": (
        "GET",
        "/",
        (b'Cookie: a="' + b"\\" * 4_000 + b'"\r\n') * 15,
        b"",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_strangers_request_costs_others_no_waiting(gateway: Gateway, attack: str) -> None:
    answer = gateway.ask(*ATTACKS[attack])
    assert answer.status < 500, answer.text
    assert answer.cpu_seconds <= MOST_CPU_SECONDS
    assert gateway.process.poll() is None
