"""Variables: what a person wrote between braces becomes each reader's own, and never a program."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.letters.content.footer import Footer
from mailout.letters.content.layout import render
from mailout.letters.content.markdown import parse_markdown
from mailout.letters.content.model import MARK_CLOSE, MARK_OPEN, UNSUBSCRIBE_URL, Content
from mailout.letters.content.notion import Block
from mailout.letters.content.notion import render as render_page
from mailout.letters.content.variables import (
    Variable,
    as_written,
    attributes_of,
    filled,
    gathered,
    marked,
    marked_for_html,
    placeholders,
    required_of,
    variables_of,
)

FOOTER = Footer("Org", "Street", "https://example.org/u")


def letter(body: str, subject: str = "s") -> Content:
    return render(parse_markdown(f"---\nsubject: '{subject}'\n---\n{body}", "x.md").document, FOOTER)


def page(*texts: dict[str, object], kind: str = "paragraph") -> Content:
    return render(render_page([Block("b", kind, {"rich_text": list(texts)})], "s"), FOOTER)


def run(text: str, **annotations: bool) -> dict[str, object]:
    return {"type": "text", "text": {"content": text}, "plain_text": text, "annotations": annotations}


def read(content: Content, **values: object) -> tuple[str, str, str]:
    """Subject, the HTML's body and the text, without the footer."""
    put = {UNSUBSCRIBE_URL: "https://example.org/u", **filled(variables_of(content), values)}
    html = content.html_segments.fill(put).partition('class="card"')[2].partition('class="footer"')[0]
    text = content.text_segments.fill(put).partition("\n\n--\n")[0]
    return content.subject_segments.fill(put), html, text


@pytest.mark.parametrize(
    "written",
    [
        "{{ first_name }}",
        "{{first_name}}",
        "{{ first_name | friend }}",
        "**{{ first_name|friend }}**",
        "{{\u00a0first_name\u00a0|\u00a0friend\u202f}}",  # as people copy it from elsewhere
        "{{\u200bfirst_name\u200b}}",
    ],
)
def test_a_reader_is_called_by_name(written: str) -> None:
    subject, html, text = read(letter(f"Dear {written},", f"For {written}"), first_name="Ann")
    assert subject.replace("*", "") == "For Ann"
    assert "Ann" in html
    assert text == "Dear Ann,"


@pytest.mark.parametrize(
    "runs",
    [
        ("Dear {{ first_", "name | friend }},"),
        ("Dear {", "{ ", "first_name", " | friend }", "},"),
        ("Dear ", "{{ first_name | friend }}", ","),
    ],
)
def test_a_variable_that_notion_cut_into_runs_is_one(runs: tuple[str, ...]) -> None:
    """A comment on a word, or bold letters, would show its braces to everybody."""
    for style in ({}, {"bold": True}):
        content = page(*(run(text, **style) if number % 2 else run(text) for number, text in enumerate(runs)))
        assert read(content, first_name="Ann")[2] == "Dear Ann,"
    assert read(page(run("Say \\"), run("{{ na"), run("me }}")))[2] == "Say {{ name }}"


@given(st.lists(st.text(alphabet="{} a|\\\n\u00a0", max_size=6), max_size=6))
def test_wherever_a_text_is_cut_its_variables_are_the_same(pieces: list[str]) -> None:
    assert "".join(map(marked, gathered(pieces))) == marked("".join(pieces))
    assert len(gathered(pieces)) == len(pieces)


@pytest.mark.parametrize("kind", ["bookmark", "embed", "image"])
def test_the_address_of_a_block_is_filled_as_that_of_a_link(kind: str) -> None:
    url = "https://example.org/{{ email }}/offer.png?u={{ email }}"
    data = {"type": "external", "external": {"url": url}} if kind == "image" else {"url": url}
    _, html, text = read(render(render_page([Block("b", kind, data)], "s"), FOOTER), email="a@example.org")
    address = "https://example.org/a%40example.org/offer.png?u=a%40example.org"
    assert f'="{address}"' in html
    assert address in text
    assert "email" not in html


def test_who_has_no_name_reads_the_fallback_and_so_does_one_with_a_blank_name() -> None:
    content = letter("Dear {{ first_name | friend of the hill }},")
    assert read(content)[2] == read(content, first_name="  ")[2] == "Dear friend of the hill,"
    assert required_of(variables_of(content)) == ()


def test_without_a_fallback_there_is_no_value_and_the_transport_refuses_that_mail() -> None:
    content = letter("Dear {{ first_name }}, {{ city | somewhere }} {{ email }}")
    assert required_of(variables_of(content)) == ("first_name",)
    assert attributes_of(variables_of(content)) == ("city", "first_name")
    with pytest.raises(KeyError, match="first_name"):
        read(content, email="a@example.org")


def test_a_value_is_escaped_where_it_stands_in_html_and_plain_in_text_and_subject() -> None:
    evil = '<b onclick="x()">&{{ email }}'
    subject, html, text = read(letter("Dear {{ name }}", "To {{ name }}"), name=evil, email="e@example.org")
    assert subject == f"To {evil}"
    assert text == f"Dear {evil}"
    assert "&lt;b onclick=&quot;x()&quot;&gt;&amp;{{ email }}" in html
    assert "<b onclick" not in html


def test_a_fallback_is_escaped_too_and_means_nothing_to_markdown() -> None:
    _, html, text = read(letter("Dear {{ name | *A* & <i>B</i> ~~c~~ }}!"))
    assert text == "Dear *A* & <i>B</i> ~~c~~!"
    assert "*A* &amp; &lt;i&gt;B&lt;/i&gt; ~~c~~" in html


def test_in_a_table_the_bar_of_a_fallback_begins_no_cell() -> None:
    content = letter("| who | where |\n|---|---|\n| {{ name | friend }} | {{ city | here }} |")
    assert "friend  here" in read(content)[2]


@pytest.mark.parametrize(
    "body",
    [
        "`{{ name }}`",
        "```\n{{ name }}\n```",
        "    {{ name }}",
        "<pre>{{ name }}</pre>",
        "<code>{{ name }}</code>",
    ],
)
def test_inside_code_it_is_literal(body: str) -> None:
    content = letter(f"Words\n\n{body}")
    assert not attributes_of(variables_of(content))
    assert "{{ name }}" in read(content)[1]
    assert "{{ name }}" in read(content)[2]


def test_a_backslash_makes_it_literal_and_stays_in_code() -> None:
    content = letter(r"Write \{{ name }} and `\{{ name }}`.", r"\{{ name }}")
    subject, html, text = read(content)
    assert subject == "{{ name }}"
    assert text == r"Write {{ name }} and \{{ name }}."
    assert r"<code" in html


def test_in_a_link_it_is_percent_encoded_and_cannot_change_where_the_link_leads() -> None:
    content = letter("[yours](https://example.org/u?id={{ id }}) [no]({{ id }})")
    _, html, text = read(content, id='javascript:alert("1")&x=2')
    assert 'href="https://example.org/u?id=javascript%3Aalert%28%221%22%29%26x%3D2"' in html
    assert 'href="javascript' not in html
    assert "(https://example.org/u?id=javascript%3Aalert" in text


ADDRESS = "https://example.org/?a="


@pytest.mark.parametrize(
    "written",
    [
        "{{ first_name | a friend & you }}",
        "{{first_name|a friend & you}}",
        "%7B%7B%20first_name%20%7C%20a%20friend%20%26%20you%20%7D%7D",
        "%7b%7bfirst_name%7ca%20friend%20&%20you%7d%7d",
    ],
)
def test_who_has_no_value_follows_a_link_with_the_fallback_in_it(written: str) -> None:
    """Notion keeps an address with its braces as they are or percent-encoded."""
    contents = [page(run("yours") | {"href": f"{ADDRESS}{written}"})]
    if written.startswith("{"):
        contents.append(letter(f"[yours]({ADDRESS}{written})"))
    for content in contents:
        assert required_of(variables_of(content)) == ()
        for said, values in (("a%20friend%20%26%20you", {}), ("Ann", {"first_name": "Ann"})):
            _, html, text = read(content, **values)
            assert f'href="{ADDRESS}{said}"' in html
            assert text == f"yours ({ADDRESS}{said})"


def test_a_percent_sign_of_a_fallback_is_one_in_the_address() -> None:
    assert f'"{ADDRESS}100%25"' in read(letter(f"[x]({ADDRESS}{{{{ n | 100% }}}})"))[1]
    assert f'"{ADDRESS}100%25"' in read(page(run("x") | {"href": f"{ADDRESS}{{{{ n | 100%25 }}}}"}))[1]


@pytest.mark.parametrize("written", ["{{ 7*7 }}", "{{}}", "{{ }}", "{% raw %}", "{ name }", "{{ a }"])
def test_what_is_no_variable_stays_as_it_is(written: str) -> None:
    content = letter(f"Words {written}", f"s {written}")
    assert not attributes_of(variables_of(content))
    assert read(content)[2] == f"Words {written}"


def test_a_notion_page_has_them_in_its_words_and_not_in_its_code() -> None:
    content = page(run("Dear {{ name | friend }}, "), run("{{ name }}", code=True), run(r" \{{ x }}"))
    _, _, text = read(content)
    assert text == "Dear friend, {{ name }} {{ x }}"
    assert not required_of(variables_of(content))
    assert "{{ name }}" in read(page(run("{{ name }}"), kind="code"))[2]
    assert render_page(
        [Block("b", "paragraph", {"rich_text": [run("x")]})], "Hi {{ name }}"
    ).subject == marked("Hi {{ name }}")


def test_a_test_shows_the_names() -> None:
    variables = variables_of(letter("{{ first_name | you }} {{ email }}"))
    assert placeholders(variables) == {"first_name": "[first_name]"}


def test_people_see_the_subject_as_it_was_written() -> None:
    assert as_written(marked("Hi {{name|you}}, {{ city }}")) == "Hi {{ name | you }}, {{ city }}"


def test_the_preheader_keeps_whole_variables() -> None:
    body = "Dear {{ first_name | friend }}, " + "we have a great many things to tell you all " * 4
    document = parse_markdown(body, "x.md").document
    assert document.preheader.startswith(marked("Dear {{ first_name | friend }}"))
    for length in range(60, 140):
        written = "w" * length + " {{ first_name | friend }} and then more words to come"
        cut = parse_markdown(written, "x.md").document.preheader
        assert cut.count(MARK_OPEN) == cut.count(MARK_CLOSE)


@given(st.text(max_size=60), st.text(max_size=30))
def test_nothing_that_is_written_or_known_of_a_reader_is_read_twice(written: str, value: str) -> None:
    """The value comes out as one piece, whatever stands in it."""
    html = marked_for_html(marked(f"a{{{{ name | {written.translate(str.maketrans('', '', '{}'))} }}}}b"))
    content = Content("s", html, "t")
    for variable in variables_of(content):
        assert Variable.of_key(variable.key) == variable
        put = content.html_segments.fill(filled([variable], {"name": value}))
        assert "<" not in put
        assert put.startswith("a")
        assert put.endswith("b")
