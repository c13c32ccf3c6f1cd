"""What people see, in a real browser: nothing sticks out of a phone's screen, in light and in dark."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page

from mailout.adapters.markdown_file import read_markdown, read_picture
from mailout.adapters.media_folder import MediaFolder
from mailout.insight.reporting.rendering import html_report
from mailout.letters.content.document import Document
from mailout.letters.content.footer import Footer
from mailout.letters.content.layout import render
from mailout.letters.content.markdown import parse_markdown
from mailout.letters.content.media import keep_media
from mailout.letters.content.model import UNSUBSCRIBE_URL
from mailout.letters.content.notion import Block
from mailout.letters.content.notion import render as render_page
from tests.browser.conftest import SCHEMES
from tests.stubs.notion_letter import every_block
from tests.unit.insight.reporting.scenes import mailout, summary

EXAMPLES = Path(__file__).parents[2] / "examples"
FOOTER = Footer("The Gardeners", "1 Garden Lane", "https://example.org/unsubscribe")


def seen(page: Page, html: str, folder: Path, *, width: int) -> list[tuple[int, str]]:
    """How wide the page really is in a screen of that width, and its background: in light, in dark."""
    file = folder / "page.html"
    file.write_text(html, encoding="utf-8")
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(file.as_uri())
    found = []
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        wide = page.evaluate("document.documentElement.scrollWidth")
        found.append((wide, page.evaluate("getComputedStyle(document.body).backgroundColor")))
    return found


def markdown_mail(folder: Path) -> str:
    letter = read_markdown(EXAMPLES / "newsletter.md").document
    return mail_of(
        keep_media(letter, read_picture, MediaFolder(folder, media_base_url=None, public_url=None))
    )


def notion_mail(folder: Path) -> str:
    page = render_page([Block.of(block) for block in every_block()], "Every block")
    pixel = MediaFolder(folder, media_base_url=None, public_url=None)
    return mail_of(keep_media(page, lambda source: b"not a picture", pixel))


def mail_of(document: Document) -> str:
    return render(document, FOOTER).html_segments.fill({UNSUBSCRIBE_URL: "https://example.org/u?token=x"})


def report_page(folder: Path) -> str:
    return html_report(summary(mailout(subject="A subject of some length, as people write them")))


PAGES = {"markdown": markdown_mail, "notion": notion_mail, "report": report_page}


@pytest.mark.parametrize("name", PAGES)
def test_nothing_sticks_out_of_a_phone_and_dark_mode_is_dark(page: Page, tmp_path: Path, name: str) -> None:
    """Else half the readers scroll sideways, or read by the light of a white page at night."""
    (in_light, light), (in_dark, dark) = seen(page, PAGES[name](tmp_path), tmp_path, width=320)
    assert max(in_light, in_dark) <= 320
    assert brightness(dark) < 80 < brightness(light)


@pytest.mark.parametrize("block", ["![A chart](https://example.invalid/chart.png)", "image"])
def test_dark_lines_on_nothing_can_be_seen_in_the_dark(page: Page, tmp_path: Path, block: str) -> None:
    """A transparent chart with black words would be black on black, and so would its description be."""
    picture = {"type": "external", "external": {"url": "https://example.invalid/chart.png"}}
    document = (
        render_page([Block("b", block, picture)], "s")
        if block == "image"
        else parse_markdown(f"---\nsubject: s\n---\n{block}", "x.md").document
    )
    seen(page, mail_of(document), tmp_path, width=320)  # dark comes last
    style = "getComputedStyle(document.querySelector('.card img'))"
    ground, words = page.evaluate(f"[{style}.backgroundColor, {style}.color]")
    assert brightness(words) < 80 < 200 < brightness(ground)


TRICKY = """---
subject: Everything that ever stuck out
---
| Night | What to look for | Where | Best at | Price for members | Price for guests |
|:--|:--|:--|--:|--:|--:|
| 13 December | Geminids, up to 100 an hour | School field | 01:30 | nothing at all | 4 EUR |

![A hill at dusk](https://example.invalid/gone.png)

```
exposures = [camera.expose(seconds=seconds, gain=120, filter="hydrogen-alpha", binning=2) for seconds in (1,)]
```

Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaftsversammlung

> [Book a seat](https://example.org/book)
"""
IGNORED = {
    "all of them": "",
    "Yahoo": r"overflow-wrap:[^;\"]*;?|word-wrap:[^;\"]*;?|word-break:[^;\"]*;?",
    "Outlook": r"white-space:[^;\"]*;?|overflow-wrap:[^;\"]*;?|word-wrap:[^;\"]*;?|max-width:[^;\"]*;?",
}
"""Styles that a mail program does not know, as it does not know them."""


@pytest.mark.parametrize("program", IGNORED)
def test_no_block_makes_a_letter_wider_than_the_screen(page: Page, tmp_path: Path, program: str) -> None:
    """A table made it 491 px wide at 360, a blocked picture 560, a line of code 1,011 in Outlook."""
    document = parse_markdown(TRICKY, "tricky.md").document
    html = mail_of(
        replace(document, html_body=document.html_body.replace("<img", '<img width="520" height="220"'))
    )
    if IGNORED[program]:
        html = re.sub(IGNORED[program], "", html)
    screen = 360 if program != "Outlook" else 640
    assert max(wide for wide, _ in seen(page, html, tmp_path, width=screen)) <= screen


def brightness(colour: str) -> float:
    red, green, blue = (int(part) for part in re.findall(r"\d+", colour)[:3])
    return (red + green + blue) / 3
