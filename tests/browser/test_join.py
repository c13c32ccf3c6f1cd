"""Joining in a real browser, without script: from a form on another site to the welcome letter, and out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urljoin

import pytest
from httpx import Client
from playwright.sync_api import Page

from mailout.adapters.ses import SesConfig, SesMode, SesTransport
from mailout.adapters.sqlite import SqliteStore
from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.base.settings import Settings
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.list_rows import LIST_TABLE, List
from mailout.letters.content.languages import language
from mailout.letters.content.signup_form import signup_form
from tests.browser.axe import violations
from tests.browser.conftest import PHONE, SCHEMES, follow
from tests.clocks import FakeClock
from tests.gateway.conftest import SECRET, Open
from tests.stubs.ses_control import SesStub, ses_stub

ANN = "ann@example.org"
PUBLIC = "https://mail.example.org"
SHARED: dict[str, Any] = {
    "signup": True,
    "public_url": PUBLIC,
    "mailout_transport": "ses",
    "unsubscribe_secret": SECRET,
    "unsubscribe_base_url": f"{PUBLIC}/unsubscribe",
    "org_name": "Harbour Association",
    "org_address": "1 Quay Street",
    "from_email": "news@example.org",
    "brand_color": "#7a1fa2",
}


@pytest.fixture
def ses() -> Iterator[SesStub]:
    with ses_stub() as stub:
        yield stub


@pytest.fixture
def gateway(open_gateway: Open) -> Client:
    return open_gateway(**SHARED)


@pytest.fixture
def engine(
    tmp_path: Path, store: SqliteStore, clock: FakeClock, ses: SesStub, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Engine]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    (tmp_path / "hello.md").write_text("---\nsubject: Welcome aboard\n---\nHello {{ name | reader }}.\n")
    store.put(LIST_TABLE, [List("news", "Harbour news", public=True, welcome_ref=str(tmp_path / "hello.md"))])
    store.put(LIST_TABLE, [List("weekly", "Weekly", "Each Monday.", public=True)])
    settings = Settings(mailout_home=tmp_path, send_rate_per_sec=0, **SHARED)
    config = SesConfig(mode=SesMode.SINGLE, endpoint_url=ses.url)
    transport = SesTransport(config)
    yield wiring.build(settings, clock, store=store, transport=transport, inline=True)
    transport.close()


@pytest.fixture
def site(tmp_path: Path, gateway: Client) -> Iterator[str]:
    """Somebody's static site, on an origin of its own, with the form that `mailout lists form` prints."""
    folder = tmp_path / "site"
    folder.mkdir()
    form = signup_form("news", str(gateway.base_url), language("en"))
    (folder / "about.html").write_text(f"<!doctype html><title>About</title><h1>About us</h1>{form}")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://localhost:{server.server_port}/about.html"
    server.shutdown()
    server.server_close()
    thread.join()


def sent(engine: Engine, ses: SesStub, subject: str) -> str:
    """What SES took, as it was written on the wire."""
    engine.sending.send_single_mails(5.0, until_idle=True)
    found = [one for one in ses.messages(ANN) if subject in str(one)]
    assert len(found) == 1, [str(one)[:200] for one in ses.messages(ANN)]
    return str(found[0])


def link(mail: str, path: str) -> str:
    found = re.search(rf"{re.escape(PUBLIC)}({path}\?token=[\w.&;=%-]+)", mail)
    assert found, mail
    return found[1].replace("&amp;", "&")


def test_from_a_form_on_another_site_to_the_welcome_letter_and_out_again(
    gateway: Client, engine: Engine, ses: SesStub, store: SqliteStore, site: str, phone: Page
) -> None:
    phone.goto(site)
    phone.get_by_label("E-mail address").fill("Ann@Example.org")
    phone.get_by_label("Name").fill("Ann")
    follow(phone.get_by_role("button", name="Subscribe"))
    assert phone.inner_text("h1") == "One more step"
    assert "news@example.org" in phone.inner_text("main")

    confirmation = link(sent(engine, ses, "Please confirm"), "/join/confirm")
    phone.goto(urljoin(str(gateway.base_url), confirmation))
    assert phone.get_by_role("button").count() == 1
    assert not store.select(subscriber_rows.COLUMNS)
    phone.get_by_role("button", name="Yes, subscribe me").dblclick()
    phone.get_by_role("heading", name="You are subscribed").wait_for()
    phone.reload()
    person = subscriber_rows.subscriber(store, ANN)
    assert {one["list_key"]: one["unsubscribed_at"] is None for one in person["lists"]} == {
        "news": True,
        "general": False,
        "weekly": False,
    }
    (consent,) = subscriber_rows.consents(store, ANN)
    assert consent["source"].startswith("http://localhost:")

    assert engine.welcomes.write() == 1
    welcome = sent(engine, ses, "Welcome aboard")
    assert "Hello Ann." in welcome
    phone.goto(urljoin(str(gateway.base_url), link(welcome, "/unsubscribe")))
    if phone.get_by_role("button", name="Unsubscribe", exact=True).count():
        follow(phone.get_by_role("button", name="Unsubscribe", exact=True))
    assert phone.inner_text("h1") == "You are unsubscribed"
    assert store.audience_size("news") == 0
    assert (engine.welcomes.write(), len(ses.messages(ANN))) == (0, 2)


def test_what_is_wrong_is_said_and_what_was_typed_stays(
    gateway: Client, engine: Engine, phone: Page, store: SqliteStore
) -> None:
    phone.goto(urljoin(str(gateway.base_url), "/join"))
    phone.get_by_label("E-mail address").fill("ann@localhost")
    phone.get_by_label("Weekly").check()
    phone.get_by_label("Name").fill("Ann")
    follow(phone.get_by_role("button", name="Subscribe"))
    assert "No mail can be sent to this address" in phone.get_by_role("alert").inner_text()
    assert phone.get_by_label("Weekly").is_checked()
    assert phone.get_by_label("Name").input_value() == "Ann"


def test_everybody_can_read_and_use_the_pages(
    gateway: Client, engine: Engine, ses: SesStub, page: Page
) -> None:
    at = partial(urljoin, str(gateway.base_url))
    page.set_viewport_size(PHONE)

    def check() -> None:
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            assert violations(page) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]

    page.goto(at("/join"))
    check()
    page.get_by_label("E-mail address").fill("ann@localhost")
    follow(page.get_by_role("button", name="Subscribe"))
    check()
    gateway.post("/join", data={"email": ANN, "list": "news"})
    page.goto(at(link(sent(engine, ses, "Please confirm"), "/join/confirm")))
    check()
    follow(page.get_by_role("button"))
    check()
    page.goto(at("/join/confirm?token=x"))
    check()
