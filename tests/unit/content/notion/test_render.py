"""What readers see of a page, and what is reported when something of it cannot be shown."""

from __future__ import annotations

import pytest

from mailout.content.notion import Block, Media, Rendered, render, replace_media
from mailout.errors import Abort, AbortCode
from tests.stubs.notion_letter import ORIGINAL, every_block
from tests.stubs.notion_pages import (
    Json,
    block,
    blocks,
    column,
    external,
    hosted,
    p,
    row,
    table,
    with_files,
    words,
)

FILES = "https://files.example.org"


def shown(*tree: Json) -> Rendered:
    return render(blocks(with_files(list(tree), FILES)))


def test_numbers_count_and_begin_again_after_something_else() -> None:
    """A recipe whose third step is called 1 is a wrong recipe."""
    step = "numbered_list_item"
    rendered = shown(
        words(step, "a"), words(step, "b", words(step, "c"), words(step, "d")), p("x"), words(step, "e")
    )
    assert rendered.text == "1. a\n2. b\n   1. c\n   2. d\n\nx\n\n1. e"
    assert rendered.html.count("<ol") == 3


def test_marks_of_two_digits_keep_the_text_aligned() -> None:
    rendered = shown(*(words("numbered_list_item", f"step {n}") for n in range(1, 11)))
    assert rendered.text.splitlines()[0] == "1.  step 1"
    assert rendered.text.splitlines()[9] == "10. step 10"


def test_a_list_that_notion_starts_at_seven_in_letters_does_so_here() -> None:
    rendered = shown(words("numbered_list_item", "a", list_start_index=7, list_format="letters"))
    assert rendered.text == "g. a"
    assert 'start="7" type="a"' in rendered.html
    assert shown(words("numbered_list_item", "a", list_start_index=14, list_format="roman")).text == "xiv. a"


def test_code_keeps_every_space_and_line() -> None:
    source = "\n  if x:\n\t  y  \n"
    rendered = shown(words("code", source))
    assert f"<code>{source}</code>" in rendered.html
    assert "      if x:\n    \t  y  " in rendered.text


def test_a_table_lines_up_in_text() -> None:
    rendered = shown(table(row("Städte", "n"), row("東京", "10")))
    assert rendered.text == "Städte | n\n-------+---\n東京   | 10"
    assert rendered.html.count('<th scope="col"') == 2


def test_a_table_with_a_header_column_says_so_to_screen_readers() -> None:
    assert shown(table(row("a", "b"), row("c", "d"), head=False, side=True)).html.count('scope="row"') == 2


def test_a_short_row_does_not_break_the_table() -> None:
    assert shown(table(row("a", "b"), row("c"))).html.count('<td class="n-cell"') == 2


def test_columns_share_the_width_as_in_notion() -> None:
    rendered = shown(block("column_list", {}, column(p("a"), ratio=0.25), column(p("b"), ratio=0.75)))
    assert 'width="25%"' in rendered.html
    assert 'width="75%"' in rendered.html
    assert rendered.text == "a\n\nb"


def test_the_table_of_contents_lists_headings_that_come_later() -> None:
    rendered = shown(block("table_of_contents"), words("heading_1", "A"), p("", words("heading_2", "B")))
    assert rendered.text.startswith("- A\n  - B")


@pytest.mark.parametrize(
    ("picture", "alt"),
    [
        (hosted("image", "a%20b.png", "The harbour"), "The harbour"),
        (hosted("image", "a%20b.png"), "a b.png"),
        (external("image", "https://example.org/?id=1"), "Image"),
    ],
)
def test_every_picture_says_what_it_is(picture: Json, alt: str) -> None:
    assert f'alt="{alt}"' in shown(picture).html


def test_a_hosted_file_is_collected_and_swapped_for_its_final_address() -> None:
    """Notion's own address dies within the hour: a mail must never carry it."""
    rendered = shown(
        hosted("image", "a.png"), hosted("file", "b.txt"), external("image", "https://e.org/c.png")
    )
    assert [(media.kind, media.name) for media in rendered.media] == [("image", "a.png"), ("file", "b.txt")]
    assert FILES not in rendered.html + rendered.text
    kept = replace_media(rendered, {media.key: f"https://m.org/?k={media.key}&x" for media in rendered.media})
    assert "notion-media:" not in kept.html + kept.text
    assert kept.html.count("&amp;x") == 2
    assert kept.text.count("&x") == 2
    assert "https://e.org/c.png" in kept.html


def test_a_file_without_a_final_address_stops_the_mailout() -> None:
    rendered = shown(hosted("image", "a.png"))
    with pytest.raises(Abort) as stopped:
        replace_media(rendered, {})
    assert stopped.value.code is AbortCode.MEDIA_UNAVAILABLE


def test_replacing_touches_only_whole_keys() -> None:
    media = (Media("a", "", "image", ""), Media("a-icon", "", "icon", ""))
    rendered = Rendered('<img src="notion-media:a-icon"> notion-media:other', "notion-media:a", media=media)
    kept = replace_media(rendered, {"a": "https://1", "a-icon": "https://2"})
    assert kept.html == '<img src="https://2"> notion-media:other'
    assert kept.text == "https://1"


def test_an_unknown_type_is_shown_as_words_and_reported() -> None:
    rendered = shown(words("brand_new", "Some words"), p("after"))
    assert rendered.text == "Some words\n\nafter"
    assert '<p class="n-p">Some words</p>' in rendered.html
    (problem,) = rendered.problems
    assert problem.code == "content_block_unsupported"
    assert "brand_new" in problem.message
    assert problem.where in problem.message


def test_an_unsupported_block_is_named_by_what_it_hides() -> None:
    rendered = shown(block("unsupported", {"block_type": "button"}), p("after"))
    assert rendered.text == "after"
    assert "'button'" in rendered.problems[0].message


def test_what_the_loader_could_not_read_is_reported() -> None:
    copy = Block("id", "synced_block", {}, (), "the original of a synced block is not shared")
    assert "not shared" in render([copy]).problems[0].message


def test_a_picture_that_cannot_be_loaded_is_reported_and_its_caption_kept() -> None:
    rendered = shown(external("image", "data:image/png;base64,x", "The harbour"))
    assert "<img" not in rendered.html
    assert rendered.text == "The harbour"
    assert len(rendered.problems) == 1


@pytest.mark.parametrize("page", [[], [p()], [p(), p("  "), block("breadcrumb")]])
def test_a_page_without_words_is_empty(page: list[Json]) -> None:
    """So that `empty_body` stops it: nobody should get a blank mail."""
    assert shown(*page) == Rendered("", "")


def test_blank_paragraphs_around_the_page_are_dropped_and_inside_kept() -> None:
    assert shown(p(), p("a"), p(), p("b"), p()).html.count("<p") == 3


def test_every_type_of_the_specification_is_shown_without_a_report() -> None:
    """Only the two that are meant to be unknown are reported."""
    rendered = render(blocks(every_block(FILES)))
    assert [problem.code for problem in rendered.problems] == ["content_block_unsupported"] * 2
    assert "'button'" in rendered.problems[0].message
    assert "'brand_new_thing'" in rendered.problems[1].message


def test_a_synced_copy_shows_what_the_loader_put_into_it() -> None:
    copy = block("synced_block", {"synced_from": {"block_id": ORIGINAL}}, p("said once"))
    assert shown(copy).text == "said once"


@pytest.mark.parametrize(
    "kind", ["bookmark", "embed", "link_preview", "image", "video", "file", "link_to_page"]
)
def test_a_block_without_its_data_does_no_harm(kind: str) -> None:
    """People leave empty embeds behind."""
    assert "href" not in shown(block(kind, {}), p("after")).html
