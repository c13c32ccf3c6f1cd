"""Letters on the web in a real browser: on a phone, in the dark, for who cannot see it; and nothing runs."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Literal

import pytest
from httpx import Client
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from mailout.adapters.sqlite import SqliteStore
from mailout.letters.audience.list_rows import LIST_TABLE, List
from mailout.readers.web_archive import web_letters
from tests.browser.axe import AXE, violations
from tests.browser.conftest import PATIENCE, follow
from tests.clocks import FakeClock
from tests.gateway.conftest import Open
from tests.gateway.letters import HOST, content_of, letter
from tests.gateway.test_web_archive import token_of

SCREENS: tuple[tuple[Literal["light", "dark"], int], ...] = (("light", 1280), ("dark", 390), ("light", 320))
BODY = """The harbour is **open** again, says [the town](https://town.example.org).

## What is new

- Ferries every hour, with a-very-long-name-that-does-not-break-anywhere-at-all-and-goes-on-and-on
- `code` and *words*

> Somebody said this.

| Boat | Leaves | From | To | Costs | Seats |
|---|---|---|---|---|---|
| Albatross | 10:00 | The old quay | The other side | 12.50 | 120 |

```
a line of code that is rather long, longer than any phone is wide, so that it has to go somewhere
```

![A boat on the water](https://media.example.org/boat.png)
"""


@pytest.fixture
def site(open_gateway: Open, store: SqliteStore, clock: FakeClock) -> Client:
    store.put(LIST_TABLE, [List("weekly", "Weekly <news> & more", public=True, archive=True)])
    for n in range(22):
        clock.wall += 86_400
        letter(store, f"Letter {n} about something that happened", content=content_of(f"Letter {n}"))
    clock.wall += 60
    letter(store, "Boats", content=content_of("Boats", BODY), list_key="weekly")
    clock.wall += 60
    letter(store, "After", list_key="weekly")
    return open_gateway(public_url=HOST, signup=True)


def pages(store: SqliteStore) -> list[str]:
    boats = next(one for one in web_letters(store) if one.title == "Boats")
    return [
        "/archive",
        "/archive?page=2",
        f"/archive/{boats.slug}",
        f"/view/{token_of(boats.id)}",
        "/archive/x",
    ]


def picture() -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (900, 300), "navy").save(data, "PNG")
    return data.getvalue()


@pytest.fixture
def tab(browser: Browser, site: Client) -> Iterator[Page]:
    context = browser.new_context(base_url=str(site.base_url))
    context.set_default_timeout(PATIENCE)
    context.add_init_script(AXE)
    context.route(
        "https://media.example.org/*",
        lambda route: route.fulfill(body=picture(), headers={"Content-Type": "image/png"}),
    )
    yield context.new_page()
    context.close()


def test_everybody_can_read_it_on_every_screen(page: Page, store: SqliteStore) -> None:
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
    for path in pages(store):
        page.goto(path)
        for scheme, width in SCREENS:
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
            assert violations(page) == [], (path, scheme, width)
            paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert paper == ("rgb(22, 21, 19)" if scheme == "dark" else "rgb(242, 241, 238)")
    assert [line for line in wrong if "404" not in line] == []


def test_a_letter_is_read_from_one_to_the_next_with_its_pictures_and_nothing_runs(page: Page) -> None:
    page.goto("/archive")
    page.get_by_role("link", name="Boats").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Boats")
    page.wait_for_load_state()
    assert page.evaluate("document.images[0].complete && document.images[0].naturalWidth") == 900
    ran = page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        " document.body.append(s); document.body.setAttribute('onclick', 'window.ran = 1');"
        " document.body.click(); return window.ran === undefined }"
    )
    assert ran
    page.get_by_role("link", name="After").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("After")
    follow(page.get_by_role("link", name="All letters"))
    follow(page.get_by_role("link", name="Weekly <news> & more"))
    expect(page.locator(".letters li")).to_have_count(2)
    page.goto("/archive")
    page.get_by_role("link", name="Older").click()
    expect(page.locator(".letters li")).to_have_count(4)
