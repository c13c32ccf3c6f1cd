"""What strangers may cost: no request of theirs holds the gateway, and none ends it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import pytest
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from gateway.app import create_app
from gateway.wrong_passwords import MANY_OVER_ALL
from mailout.adapters.sqlite import SqliteStore
from mailout.app import wiring
from mailout.base.settings import Settings
from tests.clocks import FakeClock
from tests.dashboard.conftest import NoCertificates
from tests.gateway.strangers import ADMIN, API_TOKEN, Gateway, running_gateway

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


# ── Every route, with what nobody would send ──

SEED = 26
EACH_ROUTE = 10
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND")
WORDS = (
    "x",
    "0" * 64 + ".png",
    "6f9619ff-8b86-4d01-b42d-00cf4fc964ff",
    "%00",
    "..%2f",
    "a" * 5_000,
    "%ff",
    "-1",
)
HEADERS = (
    b"",
    FORM,
    JSON,
    MULTIPART,
    FORM + b"Sec-Fetch-Site: cross-site\r\nOrigin: null\r\n",
    b"Content-Type: multipart/form-data; " + b";" * 30_000 + b"\r\n",
    b"Content-Type: multipart/form-data\r\n",
    b"Content-Type: \xff\xfe\r\n",
    b'Cookie: mailout_session="' + b"\\" * 4_000 + b'"\r\n',
    b"Cookie: mailout_session=admin.1e999.x.y; mailout_said=%ff%00\r\n",
    b"Cookie: " + b"a=b;" * 10_000 + b"\r\n",
    b"Authorization: Bearer mo_" + b"x" * 150 + b"\r\n",
    b"Authorization: Bearer \xff\r\n",
    b"Authorization: " + b"Basic " * 5_000 + b"\r\n",
    JSON + b"Authorization: Bearer " + API_TOKEN.encode() + b"\r\n",
    b"Accept-Language: " + b"de;q=0.1," * 5_000 + b"\r\n",
    b"Accept: " + b"application/json," * 3_000 + b"\r\n",
    b"Range: bytes=" + b"0-1," * 10_000 + b"5-\r\nIf-Range: x\r\n",
    b"X-Notion-Signature: sha256=" + b"\xff" * 64 + b"\r\n",
    b"X-Mailout-Secret: \xff\r\nX-Request-Id: " + b"\xff" * 10 + b"\r\n",
    b"Idempotency-Key: " + b"k" * 300 + b"\r\nHX-Request: true\r\n",
    b"".join(b"X-%d: y\r\n" % n for n in range(4_000)),
)
BODIES = (
    b"",
    b"\xff\x00" * 1_000,
    b"null",
    b"[" * 60_000,
    b'{"a":' * 10_000,
    MANY_KEYS,
    MANY_KEYS[:60_000] + b"1}",
    b'{"admin_password": "\\ud800", "TopicArn": 7, "verification_token": []}',
    b'{"verification_token": "aaaaaaaa"}',
    b'{"as": "sent", "messages": [' + b'"x",' * 10_000 + b'"x"]}',
    b"1" * 60_000,
    b"password=%ff%00&next=//x&csrf=&action=keep",
    b"a=b&" * 400,
    b"&" * 60_000,
    b"%" * 60_000,
    part(b'name="file"; filename="' + b"a" * 2_000 + b'"'),
    part(b"name=a" + b";" * 60_000),
    (b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nv\r\n') * 1_000 + b"--x--\r\n",
    b"--x\r\n" + b"A: b\r\n" * 5_000,
    nested(1_000),
    b"\r\n--" * 15_000,
    b"<!DOCTYPE a [<!ENTITY b 'c'>]>" + b"&b;" * 10_000,
)


@dataclass(frozen=True)
class Route:
    path: str
    methods: tuple[str, ...]
    query: tuple[str, ...]
    body_is_parsed_first: bool = False


def all_routes(given: Sequence[BaseRoute]) -> Iterator[APIRoute]:
    """Those of routers in routers, too: FastAPI keeps them as they were included."""
    for one in given:
        if isinstance(one, APIRoute):
            yield one
        elif (router := getattr(one, "original_router", None)) is not None:
            yield from all_routes(router.routes)


@pytest.fixture(scope="module")
def routes(tmp_path_factory: pytest.TempPathFactory) -> list[Route]:
    """Of the gateway itself: a new one is tried without anybody thinking of it."""
    home = tmp_path_factory.mktemp("routes")
    settings = Settings(mailout_home=home)
    store = SqliteStore(home / "mailout.db", FakeClock())
    forecast = wiring.queue_forecast(settings, store)
    app = create_app(
        settings, store, forecast, certificates=NoCertificates(), confirm=lambda topic, token: None
    )
    found = [
        Route(
            one.path,
            tuple(one.methods or ()),
            tuple(field.name for field in one.dependant.query_params),
            one.body_field is not None,
        )
        for one in all_routes(app.routes)
    ]
    store.close()
    return [*found, Route("/openapi.json", ("GET",), ()), Route("/nowhere", ("GET",), ())]


def test_no_body_is_read_before_its_route_asks_who_sends_it(routes: list[Route]) -> None:
    """The framework reads a body that it parses whole, however long it is, before any token is looked at."""
    assert [route.path for route in routes if route.body_is_parsed_first] == []


def session_of(gateway: Gateway) -> bytes:
    answer = gateway.ask("POST", "/login", FORM, b"password=" + ADMIN.encode().replace(b" ", b"+"))
    found = re.search(r"set-cookie: (mailout_session=[^;]+)", answer.text)
    assert found, answer.text
    return f"Cookie: {found[1]}\r\n".encode()


def test_nothing_that_is_sent_to_any_route_is_an_error_of_ours_or_costs_half_a_second(
    gateway: Gateway, routes: list[Route]
) -> None:
    chance = random.Random(SEED)
    session, guesses = session_of(gateway), 0
    assert len(routes) > 50
    for route in routes:
        for _ in range(EACH_ROUTE):
            method = chance.choice((*route.methods, *route.methods, chance.choice(METHODS)))
            body = chance.choice(BODIES) if method not in ("GET", "HEAD") or chance.random() < 0.1 else b""
            headers = chance.choice(HEADERS)
            signed_in = b"Cookie" not in headers and chance.random() < 0.3 and route.path != "/logout"
            target = re.sub(r"\{[^}]*\}", lambda _: chance.choice(WORDS), route.path)
            if chance.random() < 0.5:
                names = (*route.query, "next", "token", "q")
                target += "?" + "&".join(f"{chance.choice(names)}={chance.choice(WORDS)}" for _ in range(3))
            if method == "POST" and route.path in ("/login", "/articles/send"):
                guesses += 1  # more than so many, and every further one is slowed down
                assert guesses < MANY_OVER_ALL // 2
            sent = f"{method} {target[:200]} {headers[:80]!r} {body[:80]!r} signed in: {signed_in}"
            asked = (method, target, headers + (session if signed_in else b""), body)
            answer = gateway.ask(*asked)
            assert answer.status not in (0, 500), f"{sent}\n{answer.text}\n{gateway.log[-3000:]}"
            # What an earlier request has set going in other threads counts, too: only what costs as much each
            # time is dear itself.
            again = (gateway.ask(*asked) for _ in range(10))
            assert any(one.cpu_seconds <= MOST_CPU_SECONDS for one in chain([answer], again)), sent
    assert gateway.process.poll() is None
    assert gateway.ask("GET", "/health").status == 200
    assert "Traceback" not in gateway.log
