"""An article as a letter: its headline, the line below it, and its slices as one block of Markdown."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape

from mailout.letters.content.checks import MAX_SUBJECT
from mailout.letters.content.document import Document, cut, one_line
from mailout.letters.content.markdown import parse_markdown
from mailout.letters.content.model import clean
from mailout.letters.content.plaintext import plain_text
from mailout.letters.content.slices import Article

NO_FRONT_MATTER = "---\n---\n\n"
"""A slice may begin with a line; it must not be taken for a file's front matter."""
_PARAGRAPH = re.compile(r"<p\b[^>]*>.*?</p>", re.DOTALL)
_SOFT_BREAK = re.compile(r"(?<!<br>)(?<!<br />)\n")


def document_of(article: Article) -> Document:
    """The subject is cut at a word where it is too long for a subject line; the headline stays whole."""
    title = one_line(clean(article.title))
    dek = one_line(clean(article.dek or ""))
    body = parse_markdown(NO_FRONT_MATTER + article.body, "the slices").document
    head = f"<h1>{escape(title)}</h1>\n" + (f"<p><em>{escape(dek)}</em></p>\n" if dek else "")
    html = head + body.html_body
    return replace(
        body,
        subject=cut(title, MAX_SUBJECT),
        html_body=html,
        text_body=plain_text(_with_lines(html)),
        preheader=dek or body.preheader,
    )


def _with_lines(html: str) -> str:
    """Slices hold contact blocks: a name, an address and a number, each on a line of its own in the text."""
    return _PARAGRAPH.sub(lambda found: _SOFT_BREAK.sub("<br>", found[0]), html)
