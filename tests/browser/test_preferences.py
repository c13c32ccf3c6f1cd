"""The page of preferences in a real browser: on a phone, without script, readable for everybody."""

from __future__ import annotations

from urllib.parse import urljoin

import pytest
from httpx import Client
from playwright.sync_api import Page

from gateway.dashboard.desk import Tools
from mailout.adapters.sqlite import SqliteStore
from mailout.letters.audience import subscriber_rows
from tests.browser.axe import violations
from tests.browser.conftest import PHONE, SCHEMES, follow
from tests.clocks import FakeClock
from tests.gateway.conftest import Open
from tests.gateway.test_preferences import ANN, PUBLIC, link, lists, mailed_link, people, sent_link

__all__ = ["people"]


@pytest.fixture
def gateway(open_gateway: Open, store: SqliteStore) -> Client:
    tools = Tools(forget=lambda email: store.forget(email, "forgotten:1"))
    return open_gateway(public_url=PUBLIC, tools=tools, brand_color="#7a1fa2")


def at(gateway: Client, path: str) -> str:
    return urljoin(str(gateway.base_url), path)


def test_a_reader_chooses_pauses_asks_for_their_data_and_is_deleted(
    gateway: Client, store: SqliteStore, phone: Page
) -> None:
    phone.goto(at(gateway, link()))
    phone.get_by_label("Events <b>&").check()
    phone.get_by_label("staff").uncheck()
    phone.get_by_label("No letters for 30 days").check()
    phone.get_by_label("Language of these pages").select_option("de")
    follow(phone.get_by_role("button", name="Save"))
    assert phone.get_by_role("status").inner_text() == "Gespeichert."
    assert lists(store) == {"weekly", "events"}
    assert subscriber_rows.subscriber(store, ANN)["snoozed_until"] is not None
    assert not phone.get_by_label("staff").is_checked()  # for a day, it may have been a mistake
    phone.get_by_label("Die Pause beenden").check()
    follow(phone.get_by_role("button", name="Speichern"))
    assert subscriber_rows.subscriber(store, ANN)["snoozed_until"] is None

    follow(phone.get_by_role("button", name="Alles, was Sie über mich wissen"))
    assert "Sehen Sie in Ihr Postfach" in phone.inner_text("h1")
    phone.goto(at(gateway, sent_link(store)))
    assert "Ann Secretname" in phone.inner_text("main")
    phone.goto(at(gateway, link()))
    follow(phone.get_by_role("button", name="Mich löschen"))
    phone.goto(at(gateway, sent_link(store)))
    follow(phone.get_by_role("button", name="Mich löschen"))
    assert phone.inner_text("h1") == "Sie sind gelöscht"
    assert not subscriber_rows.subscribers(store, search=ANN)


def test_leaving_everything_is_one_click(gateway: Client, store: SqliteStore, phone: Page) -> None:
    phone.goto(at(gateway, link()))
    follow(phone.get_by_role("button", name="Unsubscribe from everything"))
    assert phone.inner_text("h1") == "You are unsubscribed"
    assert subscriber_rows.subscriber(store, ANN)["status"] == "unsubscribed"


def test_every_page_can_be_read_and_used_by_everybody_on_a_phone(
    gateway: Client, store: SqliteStore, clock: FakeClock, page: Page
) -> None:
    gateway.post(link(), data={"pause": "30"})
    page.set_viewport_size(PHONE)
    paths = [
        link(),
        link(list_key="weekly"),
        link("nobody@example.org"),
        mailed_link("data", at=clock.now()),
        mailed_link("delete", at=clock.now()),
        mailed_link("delete"),
    ]
    for path in paths:
        page.goto(at(gateway, path))
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            assert violations(page) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
