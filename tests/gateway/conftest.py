"""The gateway over a real store, with SNS's part played by a key of our own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from httpx import Client

from gateway.app import create_app
from gateway.server import ServerLimits
from mailout.adapters.sqlite import SqliteStore
from mailout.app import wiring
from mailout.base.settings import Settings
from mailout.outbox.feedback.sns import public_key
from tests.clocks import NOON, FakeClock
from tests.gateway.serving import served
from tests.new_sqlite import open_new
from tests.sns_messages import CERTIFICATE_URL, TOPIC, signer

SECRET = "the secret of these tests"


class OneCertificate:
    """One certificate, and a list of what was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def known(self, url: str) -> RSAPublicKey | None:
        return None

    def key(self, url: str) -> RSAPublicKey | None:
        self.asked.append(url)
        return public_key(signer().pem, NOON) if url == CERTIFICATE_URL else None


@pytest.fixture
def certificates() -> OneCertificate:
    return OneCertificate()


@pytest.fixture
def confirmed() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(tmp_path: Path, clock: FakeClock) -> Iterator[SqliteStore]:
    opened = open_new(tmp_path / "mailout.db", clock)
    yield opened
    opened.close()


Open = Callable[..., Client]


@pytest.fixture
def open_gateway(
    tmp_path: Path,
    store: SqliteStore,
    certificates: OneCertificate,
    confirmed: list[tuple[str, str]],
) -> Iterator[Open]:
    opened = ExitStack()

    def open_one(
        *,
        emitter: Any = None,
        confirm: Any = None,
        page_lookup: Any = None,
        limits: ServerLimits | None = None,
        answer_seconds: float = 300.0,  # patience: only tests about time choose less
        watch: Any = None,
        tools: Any = None,
        **changes: Any,
    ) -> Client:
        values: dict[str, Any] = {
            "mailout_home": tmp_path,
            "sns_topic_arns": (TOPIC,),
            "unsubscribe_secret": SECRET,
            "org_name": "Harbour Association",
            "org_address": "1 Quay Street",
            "from_email": "news@example.org",
        }
        settings = Settings(**values | changes)
        app = create_app(
            settings,
            store,
            wiring.queue_forecast(settings, store),
            certificates=certificates,
            confirm=confirm or (lambda topic, token: confirmed.append((topic, token))),
            emitter=emitter,
            page_lookup=page_lookup,
            answer_seconds=answer_seconds,
            watch=watch,
            tools=tools,
        )
        return opened.enter_context(served(app, trusted_proxies=settings.trusted_proxies, limits=limits))

    with opened:
        yield open_one


@pytest.fixture
def gateway(open_gateway: Open) -> Client:
    return open_gateway()
