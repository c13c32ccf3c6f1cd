"""Nothing that a person writes in Notion can become markup in a reader's mail."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from mailout.letters import content
from mailout.letters.content.document import CAPTIONED
from mailout.letters.content.media import media_ref
from mailout.letters.content.model import MARK_CLOSE, MARK_OPEN, Segments
from mailout.letters.content.notion import render
from mailout.letters.content.notion.styles import STYLES
from tests.stubs.notion_letter import every_block
from tests.stubs.notion_pages import (
    block,
    blocks,
    external,
    formula,
    mention,
    p,
    rich,
    row,
    table,
    text,
    words,
)

LAYOUT = Path(content.__file__).parent / "templates" / "layout.html.j2"
ALLOWED = {
    "a": {"href"},
    "blockquote": {"class"},
    "br": set(),
    "code": {"class"},
    "div": {"class"},
    "em": set(),
    "h1": {"class"},
    "h2": {"class"},
    "h3": {"class"},
    "h4": {"class"},
    "hr": {"class"},
    "img": {"class", "src", "alt", "width", "height"},
    "li": {"class"},
    "ol": {"class", "start", "type"},
    "p": {"class"},
    "pre": {"class"},
    "s": set(),
    "span": {"class"},
    "strong": set(),
    "table": {"role", "cellpadding", "cellspacing", "border", "width", "class"},
    "td": {"class", "width", "valign"},
    "th": {"class", "scope", "align"},
    "tr": set(),
    "u": set(),
    "ul": {"class"},
}


class Tags(HTMLParser):
    """Every tag with its attributes, and the words between them."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.words = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ("br", "hr", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def page_saying(said: str) -> list[Any]:
    """The same words in every place where Notion lets people write."""
    return blocks(
        [
            p([text(said, bold=True, color=said), text(said, f"https://example.org/{said}")]),
            p([mention("user", {"name": said}), mention("link_mention", {"title": said, "href": said})]),
            p([mention("date", {"start": said, "end": said, "time_zone": said}), formula(said)]),
            p([mention("custom_emoji", {"id": said, "name": said, "url": f"https://example.org/{said}"})]),
            words("heading_2", said, color=said),
            block("table_of_contents"),
            words("numbered_list_item", said, list_format=said, list_start_index=said),
            words("to_do", said, checked=said),
            words("callout", said, p(said), icon={"type": "emoji", "emoji": said}),
            block("code", {"rich_text": rich(said), "caption": rich(said), "language": said}),
            block("equation", {"expression": said}),
            external("image", f"https://example.org/{said}", said),
            external("pdf", f"https://example.org/{said}.pdf"),
            block("file", {"type": "external", "external": {"url": "https://example.org/"}, "name": said}),
            block("bookmark", {"url": said, "caption": []}),
            block("embed", {"url": f"https://example.org/{said}", "caption": rich(said)}),
            block("child_page", {"title": said}, id=said),
            block("link_to_page", {"type": said, said: said}),
            table(row(said, said), row(said, said), side=True),
            words(said or "x", said),
        ]
    )


# Characters that HTML, CSS, URLs or our own marks mind, among anything else.
nasty = st.text(
    st.one_of(st.sampled_from("<>&\"'`=/\\:; \t\n\r\x00{}()#" + MARK_OPEN + MARK_CLOSE), st.characters())
)


@given(nasty)
@example('"><script>alert(1)</script>')
@example("' onmouseover='alert(1)")
@example("javascript:alert(1)")
@example("-->]]><!--[if mso]>")
@example("&lt;script&gt;&#x3c;b&#x3e;")
def test_what_people_write_never_becomes_a_tag_an_attribute_or_a_script(said: str) -> None:
    html = Tags(render(page_saying(said)).html_body)
    assert html.open == []
    for tag, attributes in html.tags:
        assert tag in ALLOWED
        assert set(attributes) <= ALLOWED[tag]
        for name in ("href", "src"):
            if name in attributes:
                assert re.match(
                    rf"(https?://|mailto:|tel:|{MARK_OPEN}media )", attributes[name], re.IGNORECASE
                )


@given(nasty)
def test_words_arrive_as_they_were_written(said: str) -> None:
    """A reader who loses a `<` of a price comparison has lost the sentence."""
    kept = re.sub(r"[\x00-\x08\x0b-\x1f\x7f\ue000\ue001]", "", said).encode("utf-8", "replace").decode()
    html = Tags(render(blocks([p([text("begin"), text(said), text("end")])])).html_body)
    assert html.words.strip().replace("\n", "") == f"begin{kept}end".replace("\n", "")


@given(nasty)
def test_nobody_can_write_one_of_our_marks(said: str) -> None:
    """A mark is replaced per recipient: somebody who could write one could ask for others' data."""
    rendered = render(page_saying(said))
    for form in (rendered.html_body, rendered.text_body):
        assert set(Segments.of(form).names) <= {"media 1"}  # the emoji, which is ours
        assert form.count(MARK_OPEN) == form.count(MARK_CLOSE) == form.count(media_ref(1))
        assert "\0" not in form


def test_every_class_in_the_mail_has_a_rule() -> None:
    """A class without a rule is a block that looks like plain text."""
    tags = Tags(render(blocks(every_block("https://files.example.org"))).html_body).tags
    used = {name for _, attributes in tags for name in attributes.get("class", "").split()} - {CAPTIONED}
    rules = STYLES + LAYOUT.read_text(encoding="utf-8")
    assert {name for name in used if f".{name} " not in rules and f".{name}," not in rules} == set()
