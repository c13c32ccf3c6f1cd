"""What readers see of a page, and what is reported when something of it cannot be shown."""

from __future__ import annotations

import re

import pytest

from mailout.letters.content.document import Document
from mailout.letters.content.media import replace_media
from mailout.letters.content.notion import Block, render
from tests.stubs.notion_letter import ORIGINAL, every_block
from tests.stubs.notion_pages import (
    Json,
    block,
    blocks,
    column,
    external,
    formula,
    hosted,
    p,
    rich,
    row,
    table,
    text,
    with_files,
    words,
)

FILES = "https://files.example.org"


def shown(*tree: Json) -> Document:
    return render(blocks(with_files(list(tree), FILES)))


def test_numbers_count_and_begin_again_after_something_else() -> None:
    """A recipe whose third step is called 1 is a wrong recipe."""
    step = "numbered_list_item"
    rendered = shown(
        words(step, "a"), words(step, "b", words(step, "c"), words(step, "d")), p("x"), words(step, "e")
    )
    assert rendered.text_body == "1. a\n2. b\n   1. c\n   2. d\n\nx\n\n1. e"
    assert rendered.html_body.count("<ol") == 3


def test_marks_of_two_digits_keep_the_text_aligned() -> None:
    rendered = shown(*(words("numbered_list_item", f"step {n}") for n in range(1, 11)))
    assert rendered.text_body.splitlines()[0] == "1.  step 1"
    assert rendered.text_body.splitlines()[9] == "10. step 10"


def test_a_list_that_notion_starts_at_seven_in_letters_does_so_here() -> None:
    rendered = shown(words("numbered_list_item", "a", list_start_index=7, list_format="letters"))
    assert rendered.text_body == "g. a"
    assert 'start="7" type="a"' in rendered.html_body
    assert (
        shown(words("numbered_list_item", "a", list_start_index=14, list_format="roman")).text_body
        == "xiv. a"
    )


def test_code_keeps_every_space_and_line() -> None:
    source = "\n  if x:\n\t  y  \n"
    rendered = shown(words("code", source))
    assert f"<code>{source}</code>" in rendered.html_body
    assert "      if x:\n    \t  y  " in rendered.text_body


def test_a_table_lines_up_in_text() -> None:
    rendered = shown(table(row("Städte", "n"), row("東京", "10")))
    assert rendered.text_body == "Städte | n\n-------+---\n東京   | 10"
    assert rendered.html_body.count('<th scope="col"') == 2


def test_a_table_too_wide_for_text_says_every_header_once() -> None:
    long = "A column whose head has so many words that the table is too wide"
    said = f"Signature\n\nName: Ana\n{long}: x\n\n{long}: y"
    assert (
        shown(table(row("Name", "Signature", long), row("Ana", "", "x"), row("", "", "y"))).text_body == said
    )
    assert shown(table(row(long, "Signature", long))).text_body == f"{long}\nSignature\n{long}"


def test_a_table_with_a_header_column_says_so_to_screen_readers() -> None:
    assert (
        shown(table(row("a", "b"), row("c", "d"), head=False, side=True)).html_body.count('scope="row"') == 2
    )


def test_a_short_row_does_not_break_the_table() -> None:
    assert shown(table(row("a", "b"), row("c"))).html_body.count("<td>") == 2


def test_columns_share_the_width_as_in_notion() -> None:
    rendered = shown(block("column_list", {}, column(p("a"), ratio=0.25), column(p("b"), ratio=0.75)))
    assert 'width="25%"' in rendered.html_body
    assert 'width="75%"' in rendered.html_body
    assert rendered.text_body == "a\n\nb"


def test_the_table_of_contents_lists_headings_that_come_later() -> None:
    rendered = shown(block("table_of_contents"), words("heading_1", "A"), p("", words("heading_2", "B")))
    assert rendered.text_body.startswith("- A\n  - B")


@pytest.mark.parametrize(
    ("picture", "alt"),
    [
        (hosted("image", "a%20b.png"), "a b.png"),
        (external("image", "https://example.org/?id=1"), "Image"),
    ],
)
def test_every_picture_says_what_it_is(picture: Json, alt: str) -> None:
    assert f'alt="{alt}"' in shown(picture).html_body


def test_a_caption_is_said_once() -> None:
    """A voice read it twice: as the picture's description, and below it."""
    rendered = shown(hosted("image", "a.png", "The harbour"))
    assert rendered.html_body.count("The harbour") == 1
    assert rendered.text_body.count("The harbour") == 1


def test_a_hosted_file_is_collected_and_swapped_for_its_final_address() -> None:
    """Notion's own address dies within the hour: a mail must never carry it."""
    rendered = shown(
        hosted("image", "a.png"), hosted("file", "b.txt"), external("image", "https://e.org/c.png")
    )
    assert [(media.name, media.source) for media in rendered.media] == [
        ("a.png", f"{FILES}/a.png"),
        ("b.txt", f"{FILES}/b.txt"),
    ]
    assert FILES not in rendered.html_body + rendered.text_body
    kept = replace_media(rendered, {media.ref: f"https://m.org/{media.name}" for media in rendered.media})
    assert kept.media == ()
    assert '<img class="n-image" src="https://m.org/a.png"' in kept.html_body
    assert '<a href="https://m.org/b.txt">b.txt</a>' in kept.html_body
    assert "[a.png] https://m.org/a.png" in kept.text_body
    assert "b.txt (https://m.org/b.txt)" in kept.text_body
    assert "https://e.org/c.png" in kept.html_body


def test_a_file_that_is_shown_twice_is_kept_once() -> None:
    picture = hosted("image", "a.png")
    rendered = shown(picture, block("synced_block", {}, picture))
    assert len(rendered.media) == 1
    assert rendered.html_body.count(rendered.media[0].ref) == 2


def test_an_unknown_type_is_shown_as_words_and_reported() -> None:
    rendered = shown(words("brand_new", "Some words"), p("after"))
    assert rendered.text_body == "Some words\n\nafter"
    assert "<p>Some words</p>" in rendered.html_body
    (problem,) = rendered.problems
    assert problem.code == "content_block_unsupported"
    assert "“brand_new”" in problem.message
    assert problem.where == "Some words"


def test_an_unsupported_block_is_named_by_what_it_hides_and_found_by_the_words_before_it() -> None:
    rendered = shown(p("before"), block("unsupported", {"block_type": "form"}), p("after"))
    assert rendered.text_body == "before\n\nafter"
    (problem,) = rendered.problems
    assert (problem.where, "“form”" in problem.message) == ("before", True)


def test_a_button_that_notion_tells_nothing_of_is_told_with_what_to_write_instead() -> None:
    rendered = shown(p("before"), block("unsupported", {"block_type": "button"}))
    assert rendered.text_body == "before"
    (problem,) = rendered.problems
    assert problem.where == "before"
    assert "callout with nothing but a link" in problem.message


@pytest.mark.parametrize(
    "data",
    [
        {"rich_text": rich("Reserve a place"), "url": "https://e.org/boat"},
        {"title": rich("Reserve a place"), "url": "https://e.org/boat"},
        {"rich_text": [text("Reserve a place", href="https://e.org/boat")]},
    ],
)
@pytest.mark.parametrize("kind", ["button", "unsupported"])
def test_a_button_whose_label_and_address_are_told_is_a_button(kind: str, data: Json) -> None:
    rendered = shown(block(kind, data | {"block_type": "button"}))
    assert 'class="button-in"' in rendered.html_body
    assert rendered.text_body == "→ Reserve a place (https://e.org/boat)"
    assert rendered.problems == ()


def test_a_day_is_not_broken_at_its_hyphens_and_a_variable_stays_whole() -> None:
    rendered = shown(p("On 2026-11-20, {{ name | 2026-11-21 }}"))
    assert '<span class="n-day">' not in rendered.html_body
    assert '<span class="n-day">2026-11-20</span>' in shown(p("On 2026-11-20.")).html_body


def test_what_the_loader_could_not_read_is_reported() -> None:
    copy = Block("id", "synced_block", {}, (), "the original of a synced block is not shared")
    assert "not shared" in render([copy]).problems[0].message


def test_a_link_that_mail_cannot_carry_is_told_and_its_words_stay() -> None:
    """In two styles it is one link."""
    address = "webcal://example.org/dates.ics"
    runs = [text("the ", address), text("dates", address, bold=True), text(" and "), text("a", "ftp://a.b/c")]
    for kind in ("paragraph", "code", "bulleted_list_item"):
        rendered = shown(words(kind, runs))
        assert [(one.code, one.where) for one in rendered.problems] == [
            ("link_dropped", address),
            ("link_dropped", "ftp://a.b/c"),
        ]
        assert "the dates and a" in rendered.text_body
    assert not shown(
        p([text("Call us", "tel:+351123"), text("Here", "/0f0e0d0c0b0a49088706050403020100")])
    ).problems


def test_a_picture_that_cannot_be_loaded_is_reported_and_its_caption_kept() -> None:
    rendered = shown(external("image", "data:image/png;base64,x", "The harbour"))
    assert "<img" not in rendered.html_body
    assert rendered.text_body == "The harbour"
    assert len(rendered.problems) == 1


@pytest.mark.parametrize("page", [[], [p()], [p(), p("  "), block("breadcrumb")]])
def test_a_page_without_words_is_empty(page: list[Json]) -> None:
    """So that `empty_body` stops it: nobody should get a blank mail."""
    rendered = shown(*page)
    assert (rendered.html_body, rendered.text_body, rendered.media) == ("", "", ())


def test_blank_paragraphs_around_the_page_are_dropped_and_inside_kept() -> None:
    assert shown(p(), p("a"), p(), p("b"), p()).html_body.count("<p") == 3


def test_empty_paragraphs_leave_one_line_and_empty_boxes_nothing() -> None:
    """People press Enter until it looks right; a reader would scroll past the end."""
    assert shown(p("a"), p(), p("  "), p(), p("b")).html_body.count("<p") == 3
    stripe = block("paragraph", {"rich_text": [], "color": "red_background"})
    table = block("table", {"has_column_header": True}, block("table_row", {"cells": [[], []]}))
    assert shown(p("a"), stripe, table, p("b")).html_body == "<p>a</p>\n<p>b</p>"


def test_an_equation_that_letters_cannot_write_is_code_and_is_named() -> None:
    matrix = r"\begin{matrix} a & b \end{matrix}"
    rendered = shown(
        block("equation", {"expression": matrix}), block("paragraph", {"rich_text": [formula(matrix)]})
    )
    assert rendered.html_body.count("<code>") == 2
    assert [(one.code, one.where) for one in rendered.problems] == [("equation_as_source", matrix)] * 2


def test_every_type_of_the_specification_is_shown_without_a_report() -> None:
    """Only the two that are meant to be unknown are reported, and the link that may not stay."""
    rendered = render(blocks(every_block(FILES)))
    link, button, unknown = rendered.problems
    assert (link.code, link.where) == ("link_dropped", "javascript:alert(1)")
    assert (button.code, unknown.code) == ("content_block_unsupported", "content_block_unsupported")
    assert "button" in button.message
    assert "“brand_new_thing”" in unknown.message


def test_a_synced_copy_shows_what_the_loader_put_into_it() -> None:
    copy = block("synced_block", {"synced_from": {"block_id": ORIGINAL}}, p("said once"))
    assert shown(copy).text_body == "said once"


@pytest.mark.parametrize(("caption", "title"), [("A long read", "A long read"), ("", "Why gardens matter")])
def test_a_bookmark_shows_a_title_and_the_site_it_leads_to(caption: str, title: str) -> None:
    url = "https://www.example.org/2026/why-gardens-matter?utm=x"
    rendered = shown(block("bookmark", {"url": url, "caption": rich(caption)}))
    assert f'<a href="{url}">{title}</a>' in rendered.html_body
    assert '<span class="n-where">example.org</span>' in rendered.html_body
    assert rendered.text_body == f"🔖 {title} ({url})"


@pytest.mark.parametrize(
    "card",
    [
        block(
            "bookmark",
            {"url": "https://example.org/x", "caption": [text("By "), text("Ana", "https://ana.pt")]},
        ),
        block(
            "embed",
            {"url": "https://youtu.be/dQw4w9WgXcQ", "caption": [text("By "), text("Ana", "https://ana.pt")]},
        ),
        block(
            "video",
            {
                "type": "external",
                "external": {"url": "https://example.org/watch"},
                "caption": [text("By "), text("Ana", "https://ana.pt")],
            },
        ),
    ],
    ids=lambda card: card["type"],
)
def test_a_link_in_the_caption_of_a_card_is_kept(card: Json) -> None:
    rendered = shown(card)
    fallbacks = "".join(one.fallback or "" for one in rendered.media)
    assert '<a href="https://ana.pt">Ana</a>' in rendered.html_body
    assert not rendered.media or '<a href="https://ana.pt">Ana</a>' in fallbacks
    assert "By Ana (https://ana.pt)" in rendered.text_body


def test_a_caption_that_leads_where_its_bookmark_does_is_its_name() -> None:
    url = "https://example.org/x"
    rendered = shown(block("bookmark", {"url": url, "caption": [text("A read", url)]}))
    assert rendered.text_body == f"🔖 A read ({url})"
    assert rendered.html_body.count("A read") == 1


def test_a_bookmark_whose_address_says_nothing_shows_the_address_once() -> None:
    html = shown(block("bookmark", {"url": "https://www.example.org/x7?y=1", "caption": []})).html_body
    assert re.sub("<[^>]*>", "", html) == "🔖&#160;example.org/x7"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("HTTPS://Example.org/", "Example.org"),
        ("tel:+351123", "+351123"),
        ("mailto:a@b.org?subject=Hi", "a@b.org"),
    ],
)
def test_a_bookmark_of_any_address_can_be_seen(url: str, said: str) -> None:
    html = shown(block("bookmark", {"url": url, "caption": []})).html_body
    assert f'<a href="{url}">{said}</a>' in html
    named = shown(block("bookmark", {"url": url, "caption": rich("Write to us")})).html_body
    assert f'<a href="{url}">Write to us</a>' in named
    assert 'n-where"></span>' not in named


@pytest.mark.parametrize(
    "kind", ["bookmark", "embed", "link_preview", "image", "video", "file", "link_to_page"]
)
def test_a_block_without_its_data_does_no_harm(kind: str) -> None:
    """People leave empty embeds behind."""
    assert "href" not in shown(block(kind, {}), p("after")).html_body


def test_the_preheader_is_words_even_where_the_page_begins_with_a_picture() -> None:
    """It is shown in the list of mails, and an address says nothing there (a mark would stop the mailout)."""
    rendered = shown(hosted("image", "a.png", "The harbour"), hosted("file", "b.txt"))
    assert rendered.preheader == "[The harbour]"
    prose = "It was a good month, and here is why we think so."
    assert shown(hosted("image", "a.png"), p(prose)).preheader == prose
