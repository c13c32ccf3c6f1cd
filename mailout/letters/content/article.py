"""An article as a letter: its headline, the line below it, and its slices as one block of Markdown."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape

from mailout.letters.content.checks import MAX_SUBJECT
from mailout.letters.content.document import Document, cut, one_line
from mailout.letters.content.markdown import parse_markdown
from mailout.letters.content.model import Content, clean
from mailout.letters.content.plaintext import plain_text
from mailout.letters.content.slices import Article, Slice, compose
from mailout.letters.content.variables import attributes_of, literal_braces, marked, variables_of

NO_FRONT_MATTER = "---\n---\n\n"
"""A slice may begin with a line; it must not be taken for a file's front matter."""
_PARAGRAPH = re.compile(r"<p\b[^>]*>.*?</p>", re.DOTALL)
_SOFT_BREAK = re.compile(r"(?<!<br>)(?<!<br />)\n")


def document_of(article: Article) -> Document:
    """The subject is cut at a word where it is too long for a subject line; the headline stays whole."""
    title, dek = (marked(one_line(clean(written or ""))) for written in (article.title, article.dek))
    body = parse_markdown(NO_FRONT_MATTER + article.body, "the slices").document
    head = f"<h1>{escape(title)}</h1>\n" + (f"<p><em>{escape(dek)}</em></p>\n" if dek else "")
    html = head + body.html_body
    return replace(
        body,
        subject=cut(title, MAX_SUBJECT),
        html_body=html,
        text_body=plain_text(_with_lines(html)),
        preheader=dek or body.preheader,
        literals=body.literals | literal_braces(article.title, article.dek or ""),
    )


def attributes_in(one: Slice) -> tuple[str, ...]:
    """The subscribers' attributes that a slice asks for, wherever it does."""
    written = (one.title, one.dek, one.body_md, one.link_url)
    article = compose([one]) if any("{{" in text for text in written if text) else None
    if article is None:
        return ()
    document = document_of(article)
    return attributes_of(variables_of(Content(document.subject, document.html_body, document.text_body)))


def _with_lines(html: str) -> str:
    """Slices hold contact blocks: a name, an address and a number, each on a line of its own in the text."""
    return _PARAGRAPH.sub(lambda found: _SOFT_BREAK.sub("<br>", found[0]), html)
