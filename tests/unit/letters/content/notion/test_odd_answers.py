"""Whatever Notion's API may answer one day, a page becomes a mail or a report, never a stack trace."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mailout.letters.content.notion import Block, render
from mailout.letters.content.notion.page import page_of
from tests.stubs.notion_letter import every_block

KEYS = """
rich_text caption type external file url name icon emoji cells children synced_from block_id
color checked title text content mention annotations plain_text href equation expression user
date start end time_zone custom_emoji link_mention template_mention page database id
table_width has_column_header width_ratio list_start_index list_format status select checkbox
properties is_test sent_at subject
""".split()  # noqa: SIM905, one a line would be a page
TYPES = sorted({block["type"] for block in every_block()} | {"table_row", "column", "transcription"})

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([*KEYS, "https://example.org", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from(KEYS), values, max_size=8)
blocks = st.recursive(
    st.builds(Block, st.text(), st.sampled_from(TYPES), objects),
    lambda inner: st.builds(
        Block, st.text(), st.sampled_from(TYPES), objects, st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=4,
)


@given(st.lists(blocks, max_size=4))
def test_no_answer_breaks_the_renderer(page: list[Block]) -> None:
    rendered = render(page)
    assert bool(rendered.html_body) == bool(rendered.text_body)


@given(objects)
def test_no_answer_breaks_the_reading_of_properties(answer: dict[str, Any]) -> None:
    assert isinstance(page_of(answer).subject, str)
