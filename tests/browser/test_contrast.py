"""Letters and unsubscribe pages can be read in every colour of a sender, by day and by night."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page as BrowserPage
from starlette.requests import Request

from gateway.pages import Page, Pages
from mailout.base.settings import Settings
from mailout.base.signed_links import TokenData
from mailout.letters.content.brand import Brand
from mailout.letters.content.footer import Footer
from mailout.letters.content.layout import render
from mailout.letters.content.markdown import parse_markdown
from tests.browser.axe import violations
from tests.browser.conftest import SCHEMES

LETTER = """---
subject: The boats are back
excerpt: All three of them.
byline: Ana Lima
date: 2026-11-04
---
Words with a [link](https://example.org), `code` and a note[^1].

> A quote.

> [A button](https://example.org/story)

| Boat | Crew |
|------|------|
| Ana  | 3    |

[^1]: The note.
"""
WHO = TokenData("ann@example.org", "weekly")


def shown(color: str | None) -> dict[str, str]:
    brand = Brand(color=color)
    footer = Footer("The Harbour", "1 Quay Street", "https://example.org/unsubscribe")
    pages = Pages(
        Settings(
            org_name="The Harbour",
            org_address="1 Quay Street",
            reply_to="office@example.org",
            brand_color=color,
        )
    )
    request = Request({"type": "http", "headers": []})
    every = {
        page.value: bytes(pages.show(request, page, who=WHO, may_return=True).body).decode()
        for page in (Page.ASK, Page.LEFT, Page.KEPT, Page.GONE, Page.BAD)
    }
    return every | {"letter": render(parse_markdown(LETTER, "x.md").document, footer, brand).html}


@pytest.mark.parametrize("color", [None, "#f2c14e", "#7a1fa2", "#808080"])
def test_every_word_can_be_read(page: BrowserPage, color: str | None) -> None:
    """An excerpt that is dark on dark was never written, for half of all readers."""
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("about:blank")
    faint = {}
    for name, html in shown(color).items():
        page.set_content(html)
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            if found := violations(page, runOnly=["color-contrast"]):
                faint[name, scheme] = found
    assert faint == {}
