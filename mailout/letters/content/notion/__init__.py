"""A Notion page → HTML and text for a mail. Pure: takes the API's data, returns a document.

blocks → `reading` (what Notion means) → nodes, which write themselves as HTML and as text.
"""

from __future__ import annotations

from collections.abc import Sequence

from mailout.letters.content.document import Document, Problem, language_of, preheader_of
from mailout.letters.content.notion.blocks import MAX_BLOCKS, Block, within_limits
from mailout.letters.content.notion.nodes import Nodes, Paragraph, nodes_html, nodes_text
from mailout.letters.content.notion.page import NotionPage
from mailout.letters.content.notion.reading import Reader
from mailout.letters.content.notion.styles import STYLES
from mailout.letters.content.refs import page_id_of, page_url
from mailout.letters.content.variables import literal_braces, marked

__all__ = ["Block", "page_id_of", "page_url", "render"]


def render(blocks: Sequence[Block], subject: str = "", about: NotionPage | None = None) -> Document:
    """What the page says: the same blocks give the same bytes, a page without words an empty body.

    `about`: what its properties say of it.
    """
    about = about or NotionPage("", subject, None, False, None, None, None)
    page, cut = within_limits(blocks)
    reader = Reader(page)
    nodes = _trimmed(reader.nodes(page))
    text = nodes_text(nodes)
    problems = tuple(reader.problems)
    if cut:
        lost = f"Only the page's first {MAX_BLOCKS:,} blocks are in the mail. Shorten it."
        problems += (Problem("content_too_long", lost),)
    return Document(
        subject=marked(about.subject),
        html_body=nodes_html(nodes) if text else "",
        text_body=text,
        preheader=marked(about.preheader or about.excerpt) or preheader_of(text),
        problems=problems,
        media=reader.media if text else (),
        lang=language_of(text),
        language=about.language,
        date=about.day,
        styles=STYLES,
        literals=literal_braces(
            about.subject, about.preheader, about.headline or "", about.excerpt, about.byline
        )
        | reader.literals,
        headline=None if about.headline is None else marked(about.headline),
        excerpt=marked(about.excerpt),
        byline=marked(about.byline),
    )


def _trimmed(nodes: Nodes) -> Nodes:
    """Without the blank paragraphs that pages begin and end with."""
    shown = [place for place, node in enumerate(nodes) if not (isinstance(node, Paragraph) and node.is_blank)]
    return nodes[shown[0] : shown[-1] + 1] if shown else ()
