"""What every source of content produces, before the layout is put around it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from mailout.base.errors import AbortCode
from mailout.letters.content.model import ANY_MARK, MARK_CLOSE, MARK_OPEN

WEB_SCHEMES = frozenset({"http", "https"})
LINK_SCHEMES = WEB_SCHEMES | {"mailto", "tel"}
"""Where a link in a mail may lead; pictures come from the web alone."""


CAPTIONED = "captioned"
"""The class of a picture whose caption, below it, is its description."""


UNFILLED = "variable_unfilled"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something the author should know of. It stops no test."""

    code: str  # for example content_block_unsupported
    message: str
    where: str | None = None  # the words it is about or stands behind, an address, a line
    stops: AbortCode | None = None  # why no real mailout is sent with it


def link_dropped(address: str) -> Problem:
    return Problem("link_dropped", "This link leads nowhere in a mail; its words stay.", address)


def problem_line(problem: Problem) -> str:
    """In one line: where, then what it is and what to do."""
    return f"“{problem.where}”: {problem.message}" if problem.where else problem.message


@dataclass(frozen=True, slots=True)
class Media:
    """A picture or file that must be kept before the mail can point to it."""

    ref: str  # what stands in the body until then
    source: str  # a path or an address, as its reader understands it
    name: str  # gives the kept copy its extension
    fallback: str | None = None  # a video's picture: the HTML of its link, for when there is no picture


@dataclass(frozen=True, slots=True)
class Document:
    """A subject and a body, as HTML that is already safe and as text that reads well."""

    subject: str
    html_body: str
    text_body: str
    preheader: str = ""  # the line that mail programs show after the subject
    problems: tuple[Problem, ...] = ()
    media: tuple[Media, ...] = ()
    lang: str = "en"
    language: str | None = None  # asked for by its author; None: as LANGUAGE says
    date: date | None = None  # the letter's own, never the clock's
    literals: frozenset[str] = frozenset()  # `{{ x }}` that its author wants to be read as it stands
    headline: str | None = None  # above the letter; None: its subject, empty: none
    excerpt: str = ""  # a sentence below the headline
    byline: str = ""  # who wrote it
    styles: str = ""  # CSS for what the layout knows no look for; it goes inline with the layout's own


def one_line(text: str) -> str:
    """Without line breaks and other control characters: a subject or a header is one line."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+", " ", text).strip()


def cut(text: str, limit: int) -> str:
    """At most `limit` characters, ending at a word where one ends near."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    if head.count(MARK_OPEN) > head.count(MARK_CLOSE):  # never within a mark
        head = head[: head.rfind(MARK_OPEN)]
    space = head.rfind(" ")
    return (head[:space] if space > limit // 2 else head).rstrip(" ,;:.–—-") + "…"


NOT_PROSE = re.compile(r"(- |\d+\. |> |    |\[)|.*\n[=~.-]{3}|.*\n *-+  ")
"""How lists, quotes, code, pictures, headings and tables begin in text."""
UNDERLINE = re.compile(r"\n([=~.-])\1+(?=\n|$)")


_MEDIA = f"{MARK_OPEN}media [^{MARK_CLOSE}]*{MARK_CLOSE}"
_ADDRESS = re.compile(
    rf" \((?:https?://|[^\s()]+@|{_MEDIA})(?:(?:[^\s()]|\([^\s()]*\))*|[^)]*)\)|(?<=\]) (?:https?://\S+|{_MEDIA})|{_MEDIA}"
)
"""Where links and pictures lead, as texts have it: behind their words."""


def preheader_of(text: str, limit: int = 120) -> str:
    """The beginning of the first paragraph of some length, without the addresses in it."""
    text = _ADDRESS.sub("", text)
    paragraphs = [paragraph for paragraph in text.split("\n\n") if paragraph.strip()]
    prose = [paragraph for paragraph in paragraphs if len(paragraph) > 40 and not NOT_PROSE.match(paragraph)]
    line = " ".join(UNDERLINE.sub("", (prose or paragraphs or [""])[0]).split())
    return cut(line, limit)


def language_of(text: str) -> str:
    """A guess good enough for a screen reader's voice: Hebrew, Arabic, Ukrainian, Russian, else English."""
    text = re.sub(ANY_MARK, "", text)
    latin = len(re.findall(r"[A-Za-z]", text))
    for code, letters in (("he", r"[\u0590-\u05ff]"), ("ar", r"[\u0600-\u06ff]")):
        if len(re.findall(letters, text)) > latin:
            return code
    cyrillic = len(re.findall(r"[\u0400-\u04ff]", text))
    if cyrillic <= latin:
        return "en"
    return "uk" if re.search(r"[іїєґІЇЄҐ]", text) and not re.search(r"[ыэъЫЭЪ]", text) else "ru"
