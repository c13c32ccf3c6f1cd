"""Pages of any size and depth become mail, or say why not, without exhausting the machine."""

from __future__ import annotations

from functools import reduce

import pytest

from mailout.letters.content.notion import Block, render
from mailout.letters.content.notion.blocks import MAX_BLOCK_DEPTH, MAX_BLOCKS, walk, within_limits


def said(words: str, kind: str = "paragraph", children: tuple[Block, ...] = ()) -> Block:
    return Block(words, kind, {"rich_text": [{"type": "text", "plain_text": words}]}, children)


def nested(depth: int, kind: str) -> Block:
    innermost = said(f"w{depth}.", kind)
    return reduce(lambda inner, n: said(f"w{n}.", kind, (inner,)), range(depth - 1, 0, -1), innermost)


@pytest.mark.parametrize("kind", ["paragraph", "bulleted_list_item", "to_do", "quote", "toggle", "callout"])
@pytest.mark.parametrize("depth", [30, 5_000])
def test_every_word_of_a_deep_page_is_in_the_mail_in_order(kind: str, depth: int) -> None:
    rendered = render([nested(depth, kind)])
    for form in (rendered.html_body, rendered.text_body):
        places = [form.index(f"w{n}.") for n in range(1, depth + 1, 7)]
        assert places == sorted(places)
    assert rendered.problems == ()


def test_a_deep_page_stays_small() -> None:
    """Indentation is what would grow with the square of the depth."""
    assert len(render([nested(5_000, "bulleted_list_item")]).text_body) < 5_000 * (2 * MAX_BLOCK_DEPTH + 10)


def test_five_thousand_blocks_become_one_mail() -> None:
    rendered = render([said(f"w{n}.", "bulleted_list_item") for n in range(5_000)])
    assert rendered.html_body.count("<li") == 5_000
    assert rendered.html_body.count("<ul") == 1
    assert rendered.problems == ()


def test_a_page_that_multiplies_itself_is_cut_and_reported() -> None:
    """Synced blocks in synced blocks can double at every level."""
    block = said("x")
    for _ in range(40):
        block = Block("copy", "synced_block", {}, (block, block))
    rendered = render([block])
    assert [problem.code for problem in rendered.problems] == ["content_too_long"]


def test_limits_change_nothing_on_a_usual_page() -> None:
    page = (nested(10, "quote"), said("after"))
    assert within_limits(page) == (page, False)


def test_the_limits_keep_every_block_up_to_the_last() -> None:
    page = [nested(200, "toggle")] * 50
    kept, cut = within_limits(page)
    assert not cut
    assert [block.id for block in walk(kept)] == [block.id for block in walk(page)]
    assert within_limits([said("x")] * (MAX_BLOCKS + 1))[1]
