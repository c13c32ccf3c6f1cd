"""What a page's properties say of its letter: from the API's answer to what readers see."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from mailout.adapters.notion import NotionConfig, NotionPages
from mailout.base.errors import UsageError
from mailout.letters.content.document import Document
from mailout.letters.content.footer import Footer
from mailout.letters.content.layout import render
from mailout.letters.content.port import SourceMailout
from tests.stubs.notion import TOKEN
from tests.stubs.notion_pages import Json, id_of, p, rich
from tests.stubs.notion_workspace import LETTER, MAILOUTS, mailout_page, workspace
from tests.stubs.running import NotionStub
from tests.unit.adapters.notion.conftest import TestClock

FOOTER = Footer("The Gardeners", "1 Garden Lane", "https://example.org/unsubscribe")
PERSON = {"object": "user", "type": "person", "avatar_url": None, "person": {"email": "ana@example.org"}}


def property(kind: str, value: Any, id: str = "a%3Bc") -> Json:
    """As the API answers: with an id, and the value under the name of its type."""
    return {"id": id, "type": kind, kind: value}


def option(name: str) -> Json:
    return {"id": "e7b1", "name": name, "color": "green"}


def person(name: str | None) -> Json:
    told = {"name": name} if name else {}
    return {**PERSON, "id": id_of(f"user {name}"), **told}


RECORDED: Json = {
    "list": property("select", option("members")),
    "segment": property("select", option("porto")),
    "preheader": property("rich_text", rich("Before you open it")),
    "from_name": property("select", option("Ana of the Harbour")),
    "reply_to": property("email", "ana@example.org"),
    "language": property("select", option("de")),
    "headline": property("rich_text", rich("The boats\nare back")),
    "excerpt": property("rich_text", rich("All three of them, & early.")),
    "byline": property("people", [person("Ana Lima"), person("Ben Ode")]),
    "date": property("date", {"start": "2026-11-04", "end": None, "time_zone": None}),
}
Load = Callable[..., SourceMailout]


def headlines(document: Document) -> list[str]:
    return re.findall(r"<h1[^>]*>(.*?)</h1>", render(document, FOOTER).html)


@pytest.fixture
def load(stub: NotionStub, monkeypatch: pytest.MonkeyPatch) -> Load:
    """The page with these properties, as the source of a mailout."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def loaded(**properties: Json) -> SourceMailout:
        page = mailout_page("The November letter", "Ready")
        page["properties"] |= properties
        stub.load(workspace(pages={LETTER: page}, blocks={LETTER: [p("Words of the letter.")]}))
        config = NotionConfig(token=TOKEN, db_mailouts=MAILOUTS, base_url=stub.url, timeout=5.0)
        pages = NotionPages(config, TestClock())
        try:
            return pages.load(LETTER)
        finally:
            pages.close()

    return loaded


def test_the_page_says_who_sends_it_to_which_list_and_where_answers_go(load: Load) -> None:
    found = load(**RECORDED)
    assert (found.list_key, found.segment) == ("members", "porto")
    assert found.from_name == "Ana of the Harbour"
    assert found.reply_to == "ana@example.org"


@pytest.mark.parametrize(("ticked", "public"), [(True, True), (False, None)])
def test_a_ticked_box_makes_it_public_and_an_empty_one_leaves_it_to_its_list(
    load: Load, ticked: bool, public: bool | None
) -> None:
    assert load(public=property("checkbox", ticked)).public is public
    assert load().public is None


def test_readers_see_headline_excerpt_byline_and_date_of_the_page(load: Load) -> None:
    content = render(load(**RECORDED).document, FOOTER)
    assert content.subject == "The November letter"
    assert headlines(load(**RECORDED).document) == ["The boats are back"]
    for said in ("All three of them, &amp; early.", "Ana Lima, Ben Ode"):
        assert said in content.html
    assert '<html lang="de"' in content.html
    assert "4. November 2026" in content.html
    assert "Before you open it" in content.html
    above, _, _ = content.text.partition("Words of the letter.")
    assert "The boats are back" in above
    assert "All three of them, & early." in above
    assert "Ana Lima, Ben Ode · 4. November 2026" in above


def test_a_page_with_none_of_them_is_a_letter_with_its_subject_for_a_headline(load: Load) -> None:
    """Databases that were made before these properties existed still send."""
    found = load(**{name: property(one["type"], None) for name, one in RECORDED.items()})
    assert (found.list_key, found.segment, found.from_name, found.reply_to) == (None, None, None, None)
    document = found.document
    assert (document.headline, document.excerpt, document.byline, document.date) == (None, "", "", None)
    assert headlines(document) == ["The November letter"]


@pytest.mark.parametrize("word", ["false", "No", "none", "-"])
def test_a_headline_can_be_switched_off(load: Load, word: str) -> None:
    assert headlines(load(headline=property("rich_text", rich(word))).document) == []


def test_writers_whose_names_notion_does_not_tell_leave_no_stray_commas(load: Load) -> None:
    """An integration without the right to read users gets ids alone."""
    found = load(byline=property("people", [person(None), person("Ben Ode"), person(None)]))
    assert found.document.byline == "Ben Ode"


@pytest.mark.parametrize(
    ("name", "value", "named"),
    [
        ("reply_to", property("rich_text", rich("ana at example")), "ana at example"),
        ("language", property("select", option("German")), "German"),
    ],
)
def test_what_cannot_be_used_stops_the_letter_and_is_named(
    load: Load, name: str, value: Json, named: str
) -> None:
    with pytest.raises(UsageError, match=f"{name} .*{named}") as caught:
        load(**{name: value})
    assert caught.value.remedy


def test_a_language_may_be_in_capitals_and_one_that_is_none_is_named_to_the_writer(load: Load) -> None:
    assert load(language=property("select", option("DE"))).document.language == "DE"
    with pytest.raises(UsageError) as caught:
        load(language=property("select", option("German")))
    assert "German" in (caught.value.for_writer or "")
