"""The layout: the same bytes each time, the footer at the end, the marks where they belong."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.base.errors import Abort, AbortCode
from mailout.letters.content.brand import Brand
from mailout.letters.content.document import Document
from mailout.letters.content.footer import Footer
from mailout.letters.content.layout import render
from mailout.letters.content.markdown import parse_markdown
from mailout.letters.content.model import PREFERENCES_URL, UNSUBSCRIBE_URL, Segments, mark
from mailout.letters.content.notion import Block
from mailout.letters.content.notion import render as notion_page

FOOTER = Footer("Birch & Hill", "7 Hill Road", "https://example.org/u")
DOCUMENT = Document("Hello", "<h1>Hi</h1>\n<p>Body</p>", "Hi\n==\n\nBody", preheader="A <b> line")


def test_every_recipient_gets_his_own_way_out_and_nothing_else_differs():
    content = render(DOCUMENT, FOOTER)
    assert content.html_segments.names == (UNSUBSCRIBE_URL,)
    assert content.text_segments.names == (UNSUBSCRIBE_URL,)
    html = content.html_segments.fill({UNSUBSCRIBE_URL: "https://example.org/u?token=t"})
    assert 'href="https://example.org/u?token=t"' in html


def test_the_text_ends_with_the_footer_to_the_byte():
    assert render(DOCUMENT, FOOTER).text == f"{DOCUMENT.text_body}\n{FOOTER.text()}"


def test_the_html_ends_with_the_footers_elements_in_order():
    """Style attributes may be added; elements, order and text stay."""
    end = "<hr" + render(DOCUMENT, FOOTER).html.rpartition("<hr")[2].partition("</td>")[0].rstrip()
    assert re.sub(r' style="[^"]*"', "", end) == FOOTER.html()


def test_two_renders_are_byte_identical():
    assert render(DOCUMENT, FOOTER) == render(DOCUMENT, FOOTER)
    assert render(DOCUMENT, FOOTER).hash == render(replace(DOCUMENT), FOOTER).hash


def test_mail_programs_find_what_they_need():
    """Inlined styles for Gmail, a table for Outlook, dark mode and small screens, a language."""
    html = render(replace(DOCUMENT, lang="ru"), FOOTER).html
    assert '<html lang="ru"' in html
    assert "prefers-color-scheme: dark" in html
    assert "max-width: 480px" in html
    assert '<h1 style="' in html
    assert "<!--[if mso]><table" in html
    assert "A &lt;b&gt; line" in html


def test_notions_look_is_inline_and_costs_other_mails_nothing():
    """Gmail's app shows no stylesheet at all in some accounts; Markdown mails need none of Notion's."""
    notion = notion_page([Block("1", "callout", {"rich_text": [{"plain_text": "Mind the gap"}]})], "Hello")
    html = render(notion, FOOTER).html
    classes = re.findall(r'<[a-z]+[^>]* class="n-[^>]*>', html)
    assert classes
    assert all(' style="' in tag for tag in classes)
    plain = re.findall(r"^\s*\.card \.n-", html.partition("@media")[0], re.MULTILINE)
    assert plain == [], "what stands in the elements stands nowhere else"
    assert ".n-" not in render(DOCUMENT, FOOTER).html


def test_what_people_wrote_is_never_a_template():
    document = Document("{{ 7*7 }}", "<p>{{ footer }} {% raw %}</p>", "{{ body }}")
    content = render(document, replace(FOOTER, org_name="{{ body }}"))
    assert "<title>{{ 7*7 }}</title>" in content.html
    assert "{{ footer }} {% raw %}" in content.html
    assert content.text.startswith("{{ body }}\n\n--\n{{ body }} —")


def test_variables_of_the_body_survive_inlining():
    body = f'<table><tr><td>{mark("name")}</td></tr></table><p><a href="{mark("link")}">x</a></p>'
    content = render(replace(DOCUMENT, html_body=body), FOOTER)
    assert content.html_segments.names == ("name", "link", UNSUBSCRIBE_URL)


@given(st.text(min_size=1, max_size=120))
def test_whatever_is_written_the_marks_and_the_footer_are_there(body):
    document = replace(parse_markdown(f"x\n\n{body}", "n.md").document, subject="s", media=())
    document = replace(document, html_body=document.html_body.replace("\ue000", "").replace("\ue001", ""))
    assert render(document, FOOTER).html_segments.names == (UNSUBSCRIBE_URL,)


def test_half_a_mark_is_text():
    """Content of before may hold one: its mail must not end whoever sends it."""
    for text in ("a\ue000b", "a\ue001b", "\ue000", "\ue001\ue000", "a\ue000b\ue000c\ue001d"):
        found = Segments.of(text)
        assert len(found.parts) % 2 == 1
        assert found.fill({name: mark(name) for name in found.names}) == text


def test_a_subject_is_one_line():
    """A line break in a header would let a subject write headers of its own."""
    assert render(replace(DOCUMENT, subject=" Hi\r\nBcc: x@y.z "), FOOTER).subject == "Hi Bcc: x@y.z"


def test_half_a_character_in_a_subject_ends_nothing():
    r"""`subject: "\ud800"` is valid YAML, and nothing that can be kept or sent."""
    assert render(replace(DOCUMENT, subject="Hi \ud800you"), FOOTER).subject == "Hi  you"


def test_pictures_must_be_kept_before_the_layout():
    document = parse_markdown("![x](a.png)", "n.md").document
    with pytest.raises(Abort) as caught:
        render(replace(document, subject="s"), FOOTER)
    assert caught.value.code is AbortCode.MEDIA_UNAVAILABLE


def test_the_way_to_choose_stands_above_the_footer_which_stays_last_and_the_same():
    public = Footer("Birch & Hill", "7 Hill Road", "https://example.org/u", "https://mail.example.org/")
    plain, content = render(DOCUMENT, FOOTER), render(DOCUMENT, public)
    assert set(content.html_segments.names) == {UNSUBSCRIBE_URL, PREFERENCES_URL}
    assert PREFERENCES_URL not in plain.html_segments.names
    links = public.urls("t.s", "m")
    assert links[PREFERENCES_URL] == "https://mail.example.org/preferences?token=t.s"
    text = content.text_segments.fill(links)
    above, footer = text.split("\n\n--\n")
    assert above.endswith(f"Choose what you get: {links[PREFERENCES_URL]}")
    assert footer == plain.text_segments.fill(links).split("\n\n--\n")[1]
    html, before = (one.html_segments.fill(links) for one in (content, plain))
    assert html.index("Choose what you get") < html.index("<hr") < html.index(">Unsubscribe<")
    assert html[html.index("<hr") :] == before[before.index("<hr") :]


def test_a_letter_rendered_with_a_way_to_choose_goes_out_although_the_address_is_gone_since():
    public = Footer("Birch & Hill", "7 Hill Road", "https://example.org/u", "https://mail.example.org")
    content = render(DOCUMENT, public)
    links = FOOTER.urls("t.s")
    assert content.html_segments.fill(links).count(links[UNSUBSCRIBE_URL]) == 2


def test_the_words_of_the_way_to_choose_are_in_the_letters_language():
    public = Footer("Birch & Hill", "7 Hill Road", "https://example.org/u", "https://mail.example.org")
    content = render(DOCUMENT, public, Brand(language="de"))
    assert "Auswählen, was Sie bekommen: " in content.text
