"""Rich text: what a reader of the HTML and of the text sees of each style, link and mention."""

from __future__ import annotations

from typing import Any

import pytest

from mailout.letters.content.notion.rich_text import inline_html, inline_text, spans_of
from tests.stubs.notion_pages import Json, mention, text


def html(*items: Json) -> str:
    return inline_html(spans_of(list(items), _host))


def plain(*items: Json) -> str:
    return inline_text(spans_of(list(items), _host))


def _host(key: str, url: str, name: str) -> str:
    return f"hosted:{key}"


def test_a_link_in_two_styles_is_one_link() -> None:
    """Two links side by side would be two stops for a keyboard and two addresses in the text."""
    run = (text("a ", "https://example.org/x"), text("b", "https://example.org/x", bold=True))
    assert html(*run) == '<a href="https://example.org/x">a <strong>b</strong></a>'
    assert plain(*run) == "a b (https://example.org/x)"


@pytest.mark.parametrize(
    ("label", "href", "said"),
    [
        ("here", "https://example.org", "here (https://example.org)"),
        ("https://example.org/", "https://example.org", "https://example.org"),
        ("example.org", "https://www.example.org/", "https://www.example.org/"),
        ("us@example.org", "mailto:us@example.org", "us@example.org"),
        ("write ", "mailto:us@example.org", "write (us@example.org) "),
        ("write", "mailto:us@example.org?subject=Hi", "write (mailto:us@example.org?subject=Hi)"),
        (" ", "https://example.org", "https://example.org"),
    ],
)
def test_text_tells_an_address_once(label: str, href: str, said: str) -> None:
    assert plain(text(label, href)) == said


def test_what_is_struck_out_is_marked_in_the_text() -> None:
    """Without a mark an old price would read as the new one; without the words a letter could be empty."""
    assert plain(text("old 10 € ", strikethrough=True), text("8 €")) == "~~old 10 €~~ 8 €"
    assert plain(text("from "), text("forty", strikethrough=True), text(" three")) == "from ~~forty~~ three"


def test_line_breaks_are_kept() -> None:
    assert html(text("one\ntwo")) == "one<br>two"
    assert plain(text("one\ntwo")) == "one\ntwo"


@pytest.mark.parametrize(
    ("kind", "value", "written", "said"),
    [
        ("user", {"name": "Ana"}, "@Ana", "@Ana"),
        ("user", {}, "@Anonymous", "@Anonymous"),
        ("user", {}, "", "@Anonymous"),
        ("date", {"start": "2026-11-15"}, "2026-11-15", "2026-11-15"),
        ("date", {"start": "2026-11-15", "end": "2026-11-17"}, "", "2026-11-15 → 2026-11-17"),
        ("date", {"start": "2026-11-15T09:30:00.000Z"}, "", "2026-11-15 09:30 (UTC)"),
        (
            "date",
            {"start": "2026-11-15T09:30:00", "time_zone": "Europe/Berlin"},
            "",
            "2026-11-15 09:30 (Europe/Berlin)",
        ),
        (
            "date",
            {"start": "2026-11-15T09:00:00+01:00", "end": "2026-11-15T10:00:00+01:00"},
            "",
            "2026-11-15 09:00 → 10:00 (UTC+01:00)",
        ),
        ("page", {"id": "x"}, "", "Untitled"),
        ("link_mention", {"title": "A post", "href": "https://e.org/p"}, "", "A post (https://e.org/p)"),
        ("link_mention", {"href": "https://e.org/p"}, "", "https://e.org/p"),
        ("link_preview", {"url": "https://e.org/p"}, "https://e.org/p", "https://e.org/p"),
        ("custom_emoji", {"id": "1", "name": "party", "url": "https://e.org/p.png"}, "", ":party:"),
        ("template_mention", {"type": "template_mention_user", "template_mention_user": "me"}, "", "@Me"),
        ("brand_new", {"id": "1"}, "@Somebody", "@Somebody"),
    ],
)
def test_mentions_say_what_notion_shows(kind: str, value: dict[str, Any], written: str, said: str) -> None:
    assert plain(mention(kind, value, written)) == said


def test_a_custom_emoji_is_a_picture_with_its_name() -> None:
    shown = html(mention("custom_emoji", {"id": "1", "name": "party", "url": "https://e.org/p.png"}))
    assert 'src="hosted:emoji 1"' in shown
    assert 'alt=":party:"' in shown


@pytest.mark.parametrize(
    "items", [None, [], "words", [None], [{}], [{"type": "mention"}], [{"type": "text"}]]
)
def test_odd_rich_text_is_nothing_rather_than_a_crash(items: object) -> None:
    assert spans_of(items, _host) == ()
