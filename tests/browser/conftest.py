"""One browser for all that people look at: to start it, with its driver, takes longer than most tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect, sync_playwright

from tests.browser.axe import AXE
from tests.dashboard.conftest import filled
from tests.gateway.conftest import certificates, clock, confirmed, open_gateway, store
from tests.needs import chromium

__all__ = ["certificates", "clock", "confirmed", "filled", "open_gateway", "store"]

PATIENCE = 300_000
"""Milliseconds, for a machine that is busy with other things."""
FLAGS = ["--no-sandbox", "--disable-gpu", "--js-flags=--no-opt --no-maglev"]
"""The last: no page is open for so long that optimising its scripts would pay."""
PHONE: ViewportSize = {"width": 360, "height": 740}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def follow(button: Locator) -> None:
    """Click, and wait for the page that it leads to: on a busy machine a click is over long before."""
    with button.page.expect_navigation():
        button.click()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """No longer than that: Playwright keeps an event loop in this thread, which other tests do not expect."""
    found = chromium()
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="package")
def tab(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    context.add_init_script(AXE)
    yield context.new_page()
    context.close()


@pytest.fixture
def page(tab: Page) -> Page:
    """With axe-core. The same one for every test, which makes it as wide and as dark as it needs it: another
    would be another process."""
    tab.set_viewport_size({"width": 1280, "height": 900})
    tab.emulate_media(color_scheme="light")
    return tab


@pytest.fixture(scope="package")
def phone(browser: Browser) -> Iterator[Page]:
    """Without script, as mail programs open it."""
    context = browser.new_context(viewport=PHONE, java_script_enabled=False)
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()
