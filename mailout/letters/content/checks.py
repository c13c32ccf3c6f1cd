"""What stops content before its first send, and what its author is only warned of."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from html import unescape

import nh3

from mailout.base.errors import Abort, AbortCode
from mailout.letters.content.document import Document, Problem
from mailout.letters.content.inert_html import Active, require_inert
from mailout.letters.content.model import Content, Segments
from mailout.letters.content.plaintext import SILENT, VOID
from mailout.letters.content.variables import Variable, as_written, by_fallback

MAX_HTML = 512 * 1024
TAKE_OUT, SHORTEN = "Take it out, then send again.", "Make it shorter, then send again."
MAX_SUBJECT = 150
GMAIL_CLIPS = 102_000

MAX_HTML_DEPTH = 250
MAX_TAGS_OPEN = 1000
"""Of all kinds together: somebody's own HTML may leave some open, and that is not nesting."""
_END_IS_OPTIONAL = "p li dt dd tr td th thead tbody tfoot option colgroup"
ENDS_BY_ITSELF = VOID | set(_END_IS_OPTIONAL.split())
TEXT_INSIDE = frozenset({"script", "style", "noscript", "xmp", "iframe", "noembed", "noframes", "plaintext"})
"""Browsers take what is in these for text, up to the end tag."""
_PICTURE = re.compile(r"""<img\b(?:[^>"']|"[^"]*"|'[^']*')*\ssrc=""", re.IGNORECASE)
_BLANK = frozenset("☐☑▾\u115f\u1160\u2800\u3164\uffa0")
"""What stands before an empty to-do or toggle, and letters that are made to be empty."""


def check_document(document: Document) -> None:
    """A subject, a body, and every picture kept."""
    require_subject(document.subject)
    _require_flat(document.html_body)
    if not _shows_anything(document.html_body):
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


def check_content(content: Content, *, local_files: bool = True) -> tuple[Problem, ...]:
    """Refuses what mail must not carry; returns what is merely unwise."""
    require_subject(content.subject)
    if not content.html.strip() and not content.text.strip():
        raise Abort(AbortCode.EMPTY_BODY, "Neither HTML nor text was given.", remedy="Give one of the two.")
    length = len(as_written(content.subject))
    if length > MAX_SUBJECT:
        raise _invalid(f"The subject has {length} characters; {MAX_SUBJECT} is the most.", SHORTEN)
    size = len(content.html.encode())
    if size > MAX_HTML:
        raise _invalid(f"The HTML has {size:,} bytes; {MAX_HTML:,} is the most.", SHORTEN)
    _require_flat(content.html)
    try:
        without_alt = require_inert(content.html, local_files=local_files)
    except Active as error:
        raise _invalid(f"{error}.") from None
    problems = []
    if size > GMAIL_CLIPS:
        clipped = (
            f"The HTML has {size:,} bytes; Gmail hides what comes after about {GMAIL_CLIPS:,}. Make it"
            " shorter, or put its end on a page of its own and link to that."
        )
        problems.append(Problem("html_clipped", clipped))
    problems += [
        Problem("picture_without_alt", "Readers who do not see it learn nothing of this picture.", source)
        for source in without_alt
    ]
    return tuple(problems)


def require_subject(subject: str) -> None:
    """One that everybody can see, also who has no value for its variables."""
    found = [one for one in map(Variable.of_key, Segments.of(subject).names) if one is not None]
    if any(one.fallback is None for one in found) or _is_seen(by_fallback(subject)):
        return
    if found:
        said = f"Whoever has no value for {as_written(subject)} would get no subject."
        raise Abort(
            AbortCode.SUBJECT_REQUIRED,
            said,
            remedy="Write what they read instead after the |, or more words.",
            for_writer=f"{said} Write what they read instead after the |. Then set the page to Ready again.",
        )
    raise Abort(
        AbortCode.SUBJECT_REQUIRED,
        "There is no subject.",
        remedy="Give the page a title, or the file a line `subject: …` at its top, between lines of ---.",
    )


def _require_flat(html: str) -> None:
    """Other parsers recurse: what is nested without end would take the whole process down with it.

    nh3 does not recurse, and what it writes has an end tag for every start tag: easy to count. But it is slow
    with very deep HTML, and does not show what is inside a <template>: so tags are counted before, as they
    are written.
    """
    seen, opened = set[str](), Counter[str]()
    in_all = 0
    for end, written in re.findall(r"<(/?)([a-zA-Z][^\s/>]*)", html):
        name = written.lower()
        seen.add(name)
        if name in ENDS_BY_ITSELF or (end and not opened[name]):
            continue
        step = -1 if end else 1
        opened[name] += step
        in_all += step
        if opened[name] > MAX_HTML_DEPTH or in_all > MAX_TAGS_OPEN:
            raise _too_deep()
    skeleton = nh3.clean(html, tags=seen - TEXT_INSIDE, clean_content_tags=set(TEXT_INSIDE), attributes={})
    depth = 0
    for end, name in re.findall(r"<(/?)([^\s/>]+)", skeleton):
        if name not in VOID:
            depth += -1 if end else 1
            if depth > MAX_HTML_DEPTH:
                raise _too_deep()


def _too_deep() -> Abort:
    return _invalid(f"The HTML is nested more than {MAX_HTML_DEPTH} deep.")


def _shows_anything(html: str) -> bool:
    """A word, a sign or a picture. Rules, the marks of empty lists and invisible characters are nothing."""
    words = unescape(nh3.clean(html, tags=set(), clean_content_tags=SILENT))
    return bool(_PICTURE.search(html)) or _is_seen(words)


def _is_seen(words: str) -> bool:
    return any(unicodedata.category(char)[0] in "LNPS" for char in words if char not in _BLANK)


def _invalid(message: str, remedy: str = TAKE_OUT) -> Abort:
    return Abort(AbortCode.INVALID_TEMPLATE, message, remedy=remedy)
