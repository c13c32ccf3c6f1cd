"""What an author hears of before the letter leaves. A good letter hears nothing."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from mailout.letters.content.document import Problem, problem_line
from mailout.letters.content.footer import Footer
from mailout.letters.content.layout import render
from mailout.letters.content.markdown import parse_markdown
from mailout.letters.content.media import keep_media
from mailout.letters.content.notion import Block
from mailout.letters.content.notion import render as page
from mailout.letters.content.preflight import findings

FOOTER = Footer("Org", "www.example.org/TODO", "https://www.notion.so/u")
EXAMPLE = Path(__file__).parents[4] / "examples" / "newsletter.md"
WORDS = "A sentence of some length, so that nobody takes it for a picture with nothing beside it at all. " * 2


def picture() -> bytes:
    data = BytesIO()
    Image.new("RGB", (9, 9)).save(data, "PNG")
    return data.getvalue()


class Shelf:
    def keep(self, data: bytes, name: str, made_of: bytes | None = None) -> str:
        return f"https://example.org/{name}"


def found(body: str, subject: str = "A subject") -> list[Problem]:
    document = parse_markdown(f'---\nsubject: "{subject}"\n---\n{WORDS}\n\n{body}', "x.md").document
    return list(findings(document, render(document, FOOTER)))


def test_a_good_letter_has_nothing_to_look_at() -> None:
    document = parse_markdown(EXAMPLE.read_text(encoding="utf-8"), EXAMPLE.name).document
    document = keep_media(document, lambda source: picture(), Shelf())
    assert findings(document, render(document, FOOTER)) == ()
    assert (
        found(
            "Dear {{ name | friend }}, see [this](https://example.org) `TODO {{ x }} www.x.org`, ok? mine.io"
        )
        == []
    )
    assert found("Hello", "{{ name | Friend }}, the harbour opens") == []


def test_braces_that_are_meant_to_be_read_are_not_told() -> None:
    assert found(r"Write \{{ name }} where the name goes, never \{{ name }") == []
    assert found(r"[x](<https://example.org/?a=\{{ name }}&b={{ id | 0 }}>)") == []
    written = r"Write \{{ name }} and {{ 1st name }}"
    said = {"type": "text", "plain_text": written}
    document = page([Block("1", "paragraph", {"rich_text": [said]})], "s")
    assert [one.where for one in findings(document, render(document, FOOTER))] == ["{{ 1st name }}"]


def test_braces_in_the_preheader_are_told_with_what_to_write() -> None:
    written = f'---\nsubject: s\npreheader: "For {{{{ name | you }}"\n---\n{WORDS}'
    document = parse_markdown(written, "x.md").document
    (problem,) = findings(document, render(document, FOOTER))
    assert (problem.code, problem.where) == ("variable_unfilled", "{{ name | you }")
    assert "Write {{ name | you }}, in one style." in problem.message


def test_braces_in_the_senders_name_are_told() -> None:
    """They would stand in every inbox, before the subject."""
    written = f'---\nsubject: s\nfrom_name: "{{{{ from_name }}}}"\n---\n{WORDS}'
    document = parse_markdown(written, "x.md").document
    (problem,) = findings(document, render(document, FOOTER))
    assert (problem.code, problem.where) == ("variable_unfilled", "{{ from_name }}")


def test_where_a_card_leads_is_no_link_that_somebody_forgot() -> None:
    card = Block("1", "bookmark", {"url": "https://example.org/read", "caption": [{"plain_text": "A read"}]})
    document = page([card], "s")
    assert findings(document, render(document, FOOTER)) == ()


def test_a_variable_with_code_in_it_is_told_unless_it_is_meant_to_be_read() -> None:
    """It would go to everybody with its braces."""

    def told(before: str) -> list[tuple[str, str | None]]:
        runs = [before, "first_name", " }}, and `}}`."]
        said = [{"type": "text", "plain_text": run, "annotations": {}} for run in runs]
        said[1]["annotations"] = {"code": True}
        document = page([Block("1", "paragraph", {"rich_text": said})], "s")
        return [(one.code, one.where) for one in findings(document, render(document, FOOTER))]

    assert told("Dear {{ ") == [("variable_unfilled", "{{ first_name }}")]
    assert told("Dear \\{{ ") == []


def test_braces_of_two_paragraphs_are_no_variable() -> None:
    assert found("One {{ ends.\n\nAnother }} begins, `{{ code }}`.") == []


@pytest.mark.parametrize(
    ("body", "code", "where"),
    [
        (
            "[plan](https://www.notion.so/Plan-0f0e0d0c0b0a49088706050403020100)",
            "link_private",
            "notion.so/Plan",
        ),
        (
            "[plan](https://x.s3.amazonaws.com/a.pdf?X-Amz-Expires=3600&X-Amz-Signature=s)",
            "link_private",
            "a.pdf",
        ),
        ("See example.org/shop today", "link_without_scheme", "example.org/shop"),
        ("We have a shop.example.org/shop.", "link_without_scheme", "shop.example.org/shop"),
        ("[shop](example.org)", "link_dropped", "example.org"),
        ("![](https://x.y/a.png)", "picture_without_alt", "https://x.y/a.png"),
        ("![IMG_001.jpeg](https://x.y/a.png)", "picture_without_alt", "IMG_001.jpeg"),
        ("The price is TK euros", "placeholder_text", "The price is TK euros"),
        ("TODO: write this", "placeholder_text", "TODO: write this"),
        ("Lorem ipsum dolor", "placeholder_text", "Lorem ipsum dolor"),
        ("Dear {{ 1st name }}", "variable_unfilled", "{{ 1st name }}"),
        ("Dear {{ **name** }}", "variable_unfilled", "{{ name }}"),
        ("Dear {{ name | friend }", "variable_unfilled", "{{ name | friend }"),
        ("Dear { name }}", "variable_unfilled", "{ name }}"),
        ("[x](https://e.org/?a={{1st}})", "variable_unfilled", "{{1st}}"),
        ("[x](<https://e.org/?a={{ 1st | b }}>)", "variable_unfilled", "{{ 1st | b }}"),
    ],
)
def test_each_is_told_with_its_place(body: str, code: str, where: str) -> None:
    (problem,) = found(body)
    assert problem.code == code
    assert where in (problem.where or "")
    assert where in problem_line(problem)
    assert problem.message.endswith(".")
    assert ".." not in problem.message


def test_a_long_subject_is_told_and_a_longer_letter_too() -> None:
    assert [problem.code for problem in found("x", "s" * 61)] == ["subject_long"]
    (clipped,) = found("word " * 30_000)
    assert (clipped.code, "Make it shorter" in clipped.message) == ("html_clipped", True)


def test_pictures_alone_are_told() -> None:
    document = parse_markdown("---\nsubject: s\n---\n![A boat](https://x.y/a.png)", "x.md").document
    assert [one.code for one in findings(document, render(document, FOOTER))] == ["pictures_without_text"]


def test_words_that_cannot_be_read_on_their_ground_are_told_once() -> None:
    yellow = {"type": "text", "plain_text": "hard to read", "annotations": {"color": "yellow"}}
    blocks = [Block(n, "callout", {"rich_text": [yellow], "color": "brown_background"}) for n in "12"]
    light = [Block("3", "paragraph", {"rich_text": [yellow | {"annotations": {"color": "blue"}}]})]
    document = page([*blocks, *light], "s")
    html = render(document, FOOTER).html.replace("#f4eeee", "#c8b458")
    content = render(document, FOOTER)
    content = type(content)(content.subject, html, content.text)
    problems = [one for one in findings(document, content) if one.code == "contrast_low"]
    assert [one.where for one in problems] == ["hard to read"]
