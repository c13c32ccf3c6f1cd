"""A Notion page → HTML and text for a mail. Pure: takes the API's data, returns a document.

blocks → `reading` (what Notion means) → nodes, which write themselves as HTML and as text.
"""

from __future__ import annotations

from collections.abc import Sequence

from mailout.letters.content.document import Document, Problem
from mailout.letters.content.front_matter import LetterOptions
from mailout.letters.content.notion.blocks import MAX_BLOCKS, Block, within_limits
from mailout.letters.content.notion.nodes import Nodes, Paragraph, lines_of, nodes_html
from mailout.letters.content.notion.reading import Reader
from mailout.letters.content.notion.styles import STYLES

__all__ = ["Block", "render"]


def render(blocks: Sequence[Block], subject: str = "", about: LetterOptions | None = None) -> Document:
    """What the page says: the same blocks give the same bytes, a page without words an empty body.

    `about`: what its properties say of it.
    """
    about = about or LetterOptions(subject=subject)
    page, cut = within_limits(blocks)
    reader = Reader(page)
    nodes = _trimmed(reader.nodes(page))
    text = "\n".join(lines_of(nodes)).strip("\n")
    problems = reader.problems
    if cut:
        lost = f"Only the page's first {MAX_BLOCKS:,} blocks are in the mail. Shorten it."
        problems.append(Problem("content_too_long", lost))
    html, media = (nodes_html(nodes), reader.files.media) if text else ("", ())
    return about.document(html, text, problems, media, reader.literals, STYLES)


def _trimmed(nodes: Nodes) -> Nodes:
    """Without the blank paragraphs that pages begin and end with."""
    shown = [place for place, node in enumerate(nodes) if not (isinstance(node, Paragraph) and node.is_blank)]
    return nodes[shown[0] : shown[-1] + 1] if shown else ()
