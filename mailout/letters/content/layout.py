"""The layout around a document: rendered, its CSS inlined, once per content and always to the same bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from html import escape, unescape

from css_inline import CSSInliner, InlineError
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from mailout.letters.content.brand import Brand
from mailout.letters.content.checks import check_content, check_document
from mailout.letters.content.document import Document, one_line
from mailout.letters.content.footer import UNSUBSCRIBE, Footer
from mailout.letters.content.languages import FALLBACK, Language, language
from mailout.letters.content.mail_blocks import for_mail, is_right_to_left
from mailout.letters.content.model import (
    UNSUBSCRIBE_URL,
    VIEW_URL,
    Content,
    Segments,
    clean,
    mark,
    without_references,
)
from mailout.letters.content.plaintext import screen_width
from mailout.letters.content.variables import marked_for_html, without_fallback

PLAIN = Brand()
_ASKED = re.compile(r'<meta http-equiv="content-language" content="([A-Za-z-]+)"')
PREHEADER = re.compile(r'<div class="preheader"[^<>]*>([^<>]*)</div>')
_TAG = re.compile(r"<[^<>]*>")
OWN_HEADLINE = re.compile(r"\s*<h1\b.*?</h1>", re.DOTALL)
PADDING = "\u00a0\u200c" * 60
"""After the preheader: keeps mail programs from showing the body's first words behind it."""
BODY = mark("body")
"""In its place while the layout's CSS is inlined without it."""

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
    content = _rendered(document, footer, brand)
    if VIEW_URL in content.html_segments.names and without_fallback(content):
        content = _rendered(document, replace(footer, view_in_browser=False), brand)
    check_content(content)
    return content


def _rendered(document: Document, footer: Footer, brand: Brand) -> Content:
    asked = document.language or brand.language
    words = language(asked or document.lang)
    unsubscribe = words.unsubscribe if asked else UNSUBSCRIBE
    why = clean(brand.footer or "").strip()
    own = footer.reader_links(words if asked else language(FALLBACK))
    headed, headline, head = _headed(document, words)
    html = framed(
        headed,
        clean(footer.org_name),
        brand,
        headline=headline,
        why=why,
        reader_links=own,
        footer=footer.html(unsubscribe),
    )
    parts = (head, document.text_body.strip("\n"), _listed(brand.links), why, _listed(own))
    text = TEMPLATES.get_template("layout.txt.j2").render(
        body="\n\n".join(part for part in parts if part), footer=footer.text(unsubscribe)
    )
    content = Content(one_line(document.subject), html, _lines(text))
    if UNSUBSCRIBE_URL not in content.html_segments.names:
        raise AssertionError("The layout lost the link to unsubscribe; its templates must keep marks.")
    return content


def _headed(document: Document, words: Language) -> tuple[Document, str, str]:
    """The letter without a headline of its own, its headline as HTML, and as text all that stands above it.

    The subject is the headline, unless the letter brings one or wants none; one that is given beside the
    letter stands above the letter's own. In the text the subject is no headline: it was read just before.
    """
    own, told = OWN_HEADLINE.match(document.html_body), document.headline or ""
    if own and told and told.split() != unescape(_TAG.sub("", own[0])).split():
        own = None  # two headlines: both are read
    said = one_line(document.subject) if document.headline is None else told
    told = "" if own else told
    day = words.day(document.date) if document.date else ""
    byline = " · ".join(part for part in (document.byline, day) if part)
    underlined = f"{told}\n{'=' * min(screen_width(told), 72)}" if told else ""
    headline = own[0].strip() if own else f"<h1>{escape(said)}</h1>" if said else ""
    body = document.html_body[own.end() :] if own else document.html_body
    text = "\n\n".join(part for part in (underlined, document.excerpt, byline) if part)
    return replace(document, byline=byline, html_body=body), headline, text


def framed(
    document: Document,
    sender: str,
    brand: Brand = PLAIN,
    *,
    headline: str = "",
    why: str = "",
    reader_links: Sequence[tuple[str, str]] = (),
    footer: str = "",
    as_given: bool = False,
) -> str:
    """The document's HTML with the layout around it, its CSS inlined. `headline` and `footer` are safe HTML.

    `as_given`: a program's HTML, of which nothing but its place is ours.
    """
    asked = document.language or brand.language
    is_rtl = is_right_to_left(document.text_body)
    direction = "rtl" if is_rtl else "ltr"
    body = document.html_body if as_given else for_mail(_unbroken(document.html_body), direction)
    body = without_references(body)
    page = partial(
        TEMPLATES.get_template("layout.html.j2").render,
        lang=asked or document.lang,
        asked=asked,
        dir=Markup(' dir="rtl"') if is_rtl else "",
        start="right" if is_rtl else "left",
        subject=one_line(document.subject),
        document=document,
        brand=brand,
        padding=PADDING,
        sender=sender,
        headline=Markup(for_mail(headline, direction)),  # noqa: S704 (escaped, or the document's own)
        styles=Markup(document.styles + brand.styles),  # noqa: S704 (our own)
        why=why,
        reader_links=reader_links,
        footer=Markup(without_references(footer)),  # noqa: S704 (its values are escaped)
    )
    html = page(body=Markup(body))  # noqa: S704 (a Document promises to be safe)
    try:
        inlined = INLINER.inline(html)
    except InlineError:  # a style that is no CSS, such as another engine's placeholder: it stays as it is
        inlined = INLINER.inline(page(body=BODY)).replace(BODY, body)
    shown = marked_for_html(_lines(inlined))
    _check_marks(html, shown)
    return shown


def _listed(links: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"{label}: {address}" for label, address in links)


def language_asked_for(content: Content) -> str | None:
    """By the letter or by `LANGUAGE`, when it was rendered; a guess is no wish."""
    found = _ASKED.search(content.html)
    return found[1] if found else None


def preheader_in(html: str) -> str:
    """The line that mail programs show after the subject, of a mail's HTML."""
    found = PREHEADER.search(html)
    return " ".join(unescape(found[1]).rstrip(PADDING).split()) if found else ""


def _unbroken(body: str) -> str:
    """Short cells of a table stay on one line: `13 Dec` is not to become two on a phone."""
    return re.sub(r"<(td|th)((?: [^<>]*)?)>([^<>]{1,12})(?=</\1>)", r"<\1\2 nowrap>\3", body)


def _lines(text: str) -> str:
    """One kind of line break inside; the wire has its own. NUL is the hash's separator and no text."""
    return re.sub(r"\r\n?", "\n", text).replace("\0", "")


def _check_marks(before: str, shown: str) -> None:
    """Inlining writes the page again; a mark lost there would be a word that nobody gets."""
    expected = Segments.of(marked_for_html(unescape(before))).names
    if sorted(Segments.of(shown).names) != sorted(expected):
        raise AssertionError("The layout lost a mark; its templates must keep them in attributes and text.")
