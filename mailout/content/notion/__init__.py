"""A Notion page → HTML and text for a mail. Pure: takes the API's data, returns strings.

blocks → `reading` (what Notion means) → nodes → `html` and `text` (how a mail says it).
"""

from __future__ import annotations

from collections.abc import Sequence

from mailout.content.notion.blocks import MAX_BLOCKS, Block, within_limits
from mailout.content.notion.html import page_html
from mailout.content.notion.links import page_id_of, page_url
from mailout.content.notion.nodes import Nodes, Paragraph
from mailout.content.notion.reading import Reader
from mailout.content.notion.rendered import Media, Problem, Rendered, mailable, replace_media
from mailout.content.notion.styles import HEAD_STYLES, INLINE_STYLES, STYLES
from mailout.content.notion.text import nodes_text

__all__ = [
    "HEAD_STYLES",
    "INLINE_STYLES",
    "STYLES",
    "Block",
    "Media",
    "Problem",
    "Rendered",
    "page_id_of",
    "page_url",
    "render",
    "replace_media",
]


def render(blocks: Sequence[Block]) -> Rendered:
    """The body of a mail: the same blocks give the same bytes, a page without words two empty strings."""
    page, cut = within_limits(blocks)
    reader = Reader(page)
    nodes = _trimmed(reader.nodes(page))
    text = mailable(nodes_text(nodes))
    problems = reader.problems
    if cut:
        lost = f"only the page's first {MAX_BLOCKS} blocks are in the mail"
        problems += (Problem("content_too_long", lost, ""),)
    return Rendered(
        html=mailable(page_html(nodes)) if text else "",
        text=text,
        problems=problems,
        media=reader.media if text else (),
    )


def _trimmed(nodes: Nodes) -> Nodes:
    """Without the blank paragraphs that pages begin and end with."""
    shown = [place for place, node in enumerate(nodes) if not _blank(node)]
    return nodes[shown[0] : shown[-1] + 1] if shown else ()


def _blank(node: object) -> bool:
    return (
        isinstance(node, Paragraph) and not node.children and not "".join(s.text for s in node.spans).strip()
    )
