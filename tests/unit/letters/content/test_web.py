"""A letter as everybody may see it: whole, with nothing that is anybody's own."""

from __future__ import annotations

import pytest

from mailout.base.errors import UsageError
from mailout.letters.content.brand import Brand
from mailout.letters.content.front_matter import front_matter
from mailout.letters.content.layout import render
from mailout.letters.content.markdown import parse_markdown
from mailout.letters.content.model import MARK_CLOSE, MARK_OPEN, Content
from mailout.letters.content.variables import by_fallback
from mailout.letters.content.web import description_of, web_page
from tests.gateway.letters import FOOTER


def written(body: str, front: str = "subject: News", brand: Brand | None = None) -> Content:
    document = parse_markdown(f"---\n{front}\n---\n\n{body}\n", "letter.md").document
    return render(document, FOOTER, brand or Brand())


def test_variables_show_their_fallback_escaped_for_where_they_stand() -> None:
    page = web_page(written("Dear {{ name | <friend> }}.", "subject: 'For {{ name | you & yours }}'"))
    assert page.title == "For you & yours"
    assert "Dear &lt;friend&gt;." in page.letter
    assert "<title>For you &amp; yours</title>" in page.head
    assert not {MARK_OPEN, MARK_CLOSE} & set(page.html())


def test_nobodys_links_are_in_it_and_the_senders_name_and_address_are() -> None:
    content = written("Hello to everybody.")
    assert "View in browser" in content.html
    page = web_page(content).html()
    for own in (
        "View in browser",
        "Choose what you get",
        "Unsubscribe",
        "unsubscribe",
        "preferences",
        'href=""',
    ):
        assert own not in page
    assert "Harbour Association — 1 Quay Street" in page


def test_no_word_of_the_letter_is_lost_between_its_cells_and_its_footer() -> None:
    body = "First.\n\n| card | footer |\n|---|---|\n| one | two |\n\n<td class='footer'>\n\nLast words."
    page = web_page(written(body))
    for word in ("First.", "card", "one", "two", "Last words."):
        assert word in page.letter
    assert "1 Quay Street" not in page.letter
    assert page.letter.count("<table") == page.letter.count("</table>")


def test_its_description_is_the_preheader_else_its_beginning_and_never_longer_than_a_sentence_or_two() -> (
    None
):
    said = written("Words.", "subject: News\npreheader: Dear {{ name | all }}, & more")
    assert description_of(said) == "Dear all, & more"
    long = "A sentence that goes on and on, " * 20
    assert description_of(written(long)).startswith("A sentence that goes on")
    assert len(description_of(written(long, f"subject: News\npreheader: {long}"))) <= 200


def test_the_letters_language_and_its_first_picture_are_known() -> None:
    picture = "![A](https://example.org/a.png?x=1&y=2)\n\n![B](https://example.org/b.png)"
    page = web_page(written(f"Hallo zusammen.\n\n{picture}", "subject: Neues\nlanguage: de"))
    assert (page.lang, page.language) == ("de", "de")
    assert page.picture == "https://example.org/a.png?x=1&y=2"
    assert web_page(written("None.")).picture is None


def test_a_subject_without_a_fallback_shows_nothing_in_its_place() -> None:
    assert by_fallback(written("x", "subject: 'Dear {{ name }}!'").subject) == "Dear !"


def test_the_front_matter_says_public_or_not_and_nothing_else() -> None:
    assert front_matter("public: true", "a.md").public is True
    assert front_matter("public: no", "a.md").public is False
    assert front_matter("subject: x", "a.md").public is None
    with pytest.raises(UsageError, match="`public` is true or false, not 'maybe'"):
        front_matter("public: maybe", "a.md")
