"""What stops content before its first send, and what its author is only warned of."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

import nh3
from css_inline import CSSInliner

from mailout.content.document import Document, Problem, one_line
from mailout.content.model import Content
from mailout.content.plaintext import VOID, plain_text
from mailout.errors import Abort, AbortCode

MAX_HTML = 512 * 1024
TAKE_OUT, SHORTEN = "Take it out, then send again.", "Make it shorter, then send again."
MAX_SUBJECT = 150
GMAIL_CLIPS = 102_000

MAX_DEPTH = 250
ENDS_BY_ITSELF = VOID | {
    "p",
    "li",
    "dt",
    "dd",
    "tr",
    "td",
    "th",
    "thead",
    "tbody",
    "tfoot",
    "option",
    "colgroup",
}
TEXT_INSIDE = frozenset({"script", "style", "noscript", "xmp", "iframe", "noembed", "noframes", "plaintext"})
"""Browsers take what is in these for text, up to the end tag."""

_URL_ATTRIBUTES = """action background cite classid codebase data dynsrc formaction href longdesc lowsrc
manifest ping poster profile src srcset xlink:href"""
URL_ATTRIBUTES = frozenset(_URL_ATTRIBUTES.split())

AS_BROWSERS_READ_IT = CSSInliner(
    inline_style_tags=False, keep_style_tags=True, keep_link_tags=True, load_remote_stylesheets=False
)
"""Parses as HTML 5 says and writes it well-formed. Python's own parser sees other tags in broken HTML than
browsers do, and takes minutes for some of it; of well-formed HTML both have the same opinion."""


def check_document(document: Document) -> None:
    """A subject, a body, and every picture kept."""
    _require_subject(document.subject)
    _require_flat(document.html_body)
    if not document.text_body.strip() and not _shows_anything(document.html_body):
        raise Abort(
            AbortCode.EMPTY_BODY,
            "There is nothing in the body, neither words nor a picture.",
            remedy="Write something, then send again.",
        )
    if document.media:
        sources = ", ".join(media.source for media in document.media)
        raise Abort(
            AbortCode.MEDIA_UNAVAILABLE,
            f"Not kept yet, so the mail cannot show it: {sources}.",
            remedy="Send it through the engine, which keeps them first.",
        )


def check_content(content: Content) -> tuple[Problem, ...]:
    """Refuses what mail must not carry; returns what is merely unwise."""
    _require_subject(content.subject)
    if not content.html.strip() and not content.text.strip():
        raise Abort(AbortCode.EMPTY_BODY, "Neither HTML nor text was given.", remedy="Give one of the two.")
    if len(content.subject) > MAX_SUBJECT:
        raise _invalid(
            f"The subject has {len(content.subject)} characters; {MAX_SUBJECT} is the most.", SHORTEN
        )
    size = len(content.html.encode())
    if size > MAX_HTML:
        raise _invalid(f"The HTML has {size:,} bytes; {MAX_HTML:,} is the most.", SHORTEN)
    _require_flat(content.html)
    guard = _Guard()
    guard.read(content.html)
    problems = []
    if size > GMAIL_CLIPS:
        clipped = f"The HTML has {size:,} bytes; Gmail hides what comes after about {GMAIL_CLIPS:,}."
        problems.append(Problem("html_clipped", clipped))
    problems += [
        Problem("picture_without_alt", "Readers who do not see it learn nothing of this picture.", source)
        for source in guard.without_alt
    ]
    return tuple(problems)


class _Guard(HTMLParser):
    """Judges parsed tags and attributes, so that an escaped code sample is just text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.without_alt: list[str] = []

    def read(self, html: str) -> None:
        self.feed(AS_BROWSERS_READ_IT.inline(html))
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "script" or tag.endswith(":script"):
            raise _invalid("The HTML holds a <script>.")
        for name, value in attributes:
            if re.match(r"on[a-z]", name):
                raise _invalid(f"<{tag}> has an event handler, {name}.")
            if _runs_script(tag, name, value or ""):
                raise _invalid(f"<{tag}> has a javascript: address in {name}.")
        if tag in TEXT_INSIDE:
            self.set_cdata_mode(tag)
        if tag == "img" and "alt" not in dict(attributes):
            self.without_alt.append(dict(attributes).get("src") or "")

    def handle_comment(self, data: str) -> None:
        """To Outlook a conditional comment is no comment."""
        if data.startswith("[if") and "<script" in data.lower():
            raise _invalid("A conditional comment holds a <script>.")


def _runs_script(tag: str, name: str, value: str) -> bool:
    # Browsers pass over control characters and white space inside a scheme; so does this.
    address = re.sub(r"[\x00-\x20\x7f-\xa0]+", "", value).lower()
    if name in URL_ATTRIBUTES:
        return address.startswith(("javascript:", "vbscript:")) or ",javascript:" in address
    if name == "style" or (tag == "meta" and name == "content"):
        return "javascript:" in address
    return name == "srcdoc"


def _require_subject(subject: str) -> None:
    if not one_line(subject):
        raise Abort(
            AbortCode.SUBJECT_REQUIRED, "There is no subject.", remedy="Give it one, then send again."
        )


def _require_flat(html: str) -> None:
    """Other parsers recurse: what is nested without end would take the whole process down with it.

    nh3 does not recurse, and what it writes has an end tag for every start tag: easy to count. It is slow
    with very deep HTML, so what is left open again and again is refused before.
    """
    left_open = Counter(name.lower() for name in re.findall(r"<([a-zA-Z][^\s/>]*)", html))
    names = set(left_open)
    left_open.subtract(name.lower() for name in re.findall(r"</([a-zA-Z][^\s/>]*)", html))
    if any(count > MAX_DEPTH for name, count in left_open.items() if name not in ENDS_BY_ITSELF):
        raise _too_deep()
    skeleton = nh3.clean(html, tags=names - TEXT_INSIDE, clean_content_tags=set(TEXT_INSIDE), attributes={})
    depth = 0
    for end, name in re.findall(r"<(/?)([^\s/>]+)", skeleton):
        if name not in VOID:
            depth += -1 if end else 1
            if depth > MAX_DEPTH:
                raise _too_deep()


def _too_deep() -> Abort:
    return _invalid(f"The HTML is nested more than {MAX_DEPTH} deep.")


def _shows_anything(html: str) -> bool:
    return bool(plain_text(html).strip()) or bool(re.search(r"<img\b", html, re.IGNORECASE))


def _invalid(message: str, remedy: str = TAKE_OUT) -> Abort:
    return Abort(AbortCode.INVALID_TEMPLATE, message, remedy=remedy)
