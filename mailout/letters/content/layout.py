"""The layout around a document: rendered, its CSS inlined, once per content and always to the same bytes."""

from __future__ import annotations

import re
from html import unescape

from css_inline import CSSInliner
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from mailout.letters.content.brand import Brand
from mailout.letters.content.checks import check_content, check_document
from mailout.letters.content.document import Document, one_line
from mailout.letters.content.footer import UNSUBSCRIBE, Footer
from mailout.letters.content.languages import language
from mailout.letters.content.model import UNSUBSCRIBE_URL, Content, Segments, clean
from mailout.letters.content.variables import marked_for_html

PLAIN = Brand()
_ASKED = re.compile(r'<meta http-equiv="content-language" content="([A-Za-z-]+)"')
HEADING = re.compile(r"<h[1-6]\b")
PADDING = "\u00a0\u200c" * 60
"""After the preheader: keeps mail programs from showing the body's first words behind it."""

TEMPLATES = Environment(
    loader=PackageLoader("mailout.letters.content"),
    autoescape=select_autoescape(["html.j2"]),
    undefined=StrictUndefined,
)
"""Trusted templates only. What people wrote is handed to them as values and is never a template itself."""

INLINER = CSSInliner(
    keep_style_tags=False,  # what stands in every element need not stand in <style> too
    keep_at_rules=True,  # dark mode and small screens
    load_remote_stylesheets=False,
)


def render(document: Document, footer: Footer, brand: Brand = PLAIN) -> Content:
    """A mailout's content: layout, footer, marks where recipients differ. Aborts if it must not be sent."""
    check_document(document)
    subject = one_line(document.subject)
    asked = document.language or brand.language
    words = language(asked or document.lang)
    unsubscribe = words.unsubscribe if asked else UNSUBSCRIBE
    why = clean(brand.footer or "").strip()
    html = TEMPLATES.get_template("layout.html.j2").render(
        lang=asked or document.lang,
        asked=asked,
        subject=subject,
        title="" if HEADING.search(document.html_body) else subject,
        preheader=document.preheader,
        padding=PADDING,
        sender=clean(footer.org_name),
        logo=brand.logo,
        date=words.day(document.date) if document.date else "",
        styles=Markup(document.styles + brand.styles),  # noqa: S704 (our own)
        body=Markup(_unbroken(document.html_body)),  # noqa: S704 (safe: that is what a Document promises)
        why=why,
        footer=Markup(footer.html(unsubscribe)),  # noqa: S704 (its values are escaped)
    )
    body = document.text_body.strip("\n")
    text = TEMPLATES.get_template("layout.txt.j2").render(
        body=f"{body}\n\n{why}" if why else body, footer=footer.text(unsubscribe)
    )
    content = Content(subject, marked_for_html(_lines(INLINER.inline(html))), _lines(text))
    _check_marks(html, content)
    check_content(content)
    return content


def language_asked_for(content: Content) -> str | None:
    """By the letter or by `LANGUAGE`, when it was rendered; a guess is no wish."""
    found = _ASKED.search(content.html)
    return found[1] if found else None


def _unbroken(body: str) -> str:
    """Short cells of a table stay on one line: `13 Dec` is not to become two on a phone."""
    return re.sub(r"<(td|th)((?: [^<>]*)?)>([^<>]{1,12})(?=</\1>)", r"<\1\2 nowrap>\3", body)


def _lines(text: str) -> str:
    """One kind of line break inside; the wire has its own. NUL is the hash's separator and no text."""
    return re.sub(r"\r\n?", "\n", text).replace("\0", "")


def _check_marks(before: str, content: Content) -> None:
    """Inlining writes the page again; a mark lost there would be a mail that nobody can unsubscribe from."""
    expected = Segments.of(marked_for_html(unescape(before))).names
    if sorted(content.html_segments.names) != sorted(expected) or UNSUBSCRIBE_URL not in expected:
        raise AssertionError("The layout lost a mark; its templates must keep them in attributes and text.")
