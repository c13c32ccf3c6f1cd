"""What an author should look at before a letter leaves: where, and what to do. None of it blocks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlsplit

from mailout.content.checks import check_content
from mailout.content.colors import READABLE, contrast
from mailout.content.document import Document, Problem, cut
from mailout.content.model import MARK_CLOSE, MARK_OPEN, Content
from mailout.content.plaintext import VOID
from mailout.content.variables import as_written

LONG_SUBJECT = 60
BESIDE_A_LINK = "n-where"
"""Words in small print that only say where the link above them leads."""
FEW_WORDS = 20
"""Fewer than these beside a picture: whoever does not see it, and every spam filter, sees an empty letter."""

_PLACEHOLDER = re.compile(r"\b(?:TK|TODO|FIXME|XXX)\b|(?i:\blorem ipsum\b)")
_BARE_LINK = re.compile(
    r"(?<![\w@./:-])(?:www\.[\w-]+(?:\.[\w-]+)+|[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|eu|de|pt)/[\w-])"
    r"[\w./?=&%-]*"
)
_UNFILLED = re.compile(r"\{\{[^{}]{0,80}\}\}")
_FILE_NAME = re.compile(r"(?:image|picture|img)?|.*\.(?:png|jpe?g|gif|webp|avif|svg|heic)", re.IGNORECASE)
_PRIVATE = re.compile(r"(?:^|\.)notion\.(?:so|com)$", re.IGNORECASE)
_COLOR = re.compile(r"(?:^|;)\s*(color|background-color)\s*:\s*(#[0-9a-fA-F]{6})")
_MARKS = re.compile(f"{MARK_OPEN}[^{MARK_CLOSE}]*{MARK_CLOSE}")


def findings(document: Document, content: Content) -> tuple[Problem, ...]:
    """Everything there is to look at: what its source could not show, then what it says itself."""
    letter = _Letter()
    letter.feed(content.html)
    letter.close()
    found = (
        *document.problems,
        *(problem for problem in check_content(content) if problem.code != "picture_without_alt"),
        *_subject(content, document.literals),
        *_links(letter),
        *_pictures(letter),
        *_words(letter, document.literals),
        *_contrast(letter),
    )
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class _Words:
    text: str
    color: str
    background: str
    linked: bool
    is_code: bool


@dataclass
class _Open:
    tag: str
    color: str
    background: str
    linked: bool
    is_code: bool


@dataclass
class _Seen:
    words: list[_Words] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    pictures: list[tuple[str, str]] = field(default_factory=list)  # address, alt


class _Letter(HTMLParser):
    """What a reader sees between masthead and footer, in its colours. The HTML is ours: well-formed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.seen = _Seen()
        self._open: list[_Open] = []
        self._inside = 0  # how many elements were open when the letter's own began; 0: not in it

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        if tag == "img" and self._inside:
            self.seen.pictures.append((given.get("src", ""), given.get("alt", "").strip()))
        if tag in VOID:
            return
        above = self._open[-1] if self._open else _Open("", "#000000", "#ffffff", False, False)
        colors = dict(_COLOR.findall(given.get("style", "")))
        self._open.append(
            _Open(
                tag,
                colors.get("color", above.color).lower(),
                colors.get("background-color", above.background).lower(),
                above.linked or tag == "a" or BESIDE_A_LINK in given.get("class", "").split(),
                above.is_code or tag in ("code", "pre"),
            )
        )
        if tag == "a" and self._inside and given.get("href"):
            self.seen.links.append(given["href"])
        if tag == "td" and "card" in given.get("class", "").split():
            self._inside = len(self._open)

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            closed = self._open.pop()
            if len(self._open) < self._inside:
                self._inside = 0
            if closed.tag == tag:
                return

    def handle_data(self, data: str) -> None:
        if self._inside and data.strip():
            here = self._open[-1]
            text = " ".join(_without_marks(data).split())
            self.seen.words.append(_Words(text, here.color, here.background, here.linked, here.is_code))


def _without_marks(text: str) -> str:
    """Filled variables are no words of the letter's own."""
    return _MARKS.sub("…", text)


def _subject(content: Content, literals: Collection[str]) -> Iterator[Problem]:
    subject = as_written(content.subject)
    if len(subject) > LONG_SUBJECT:
        yield Problem(
            "subject_long",
            f"The subject has {len(subject)} characters; phones show about {LONG_SUBJECT}. Say the most"
            " important thing first, or make it shorter.",
            subject,
        )
    yield from _unfilled(_without_marks(content.subject), literals)


def _links(letter: _Letter) -> Iterator[Problem]:
    for address in dict.fromkeys(letter.seen.links):
        try:
            host = urlsplit(_MARKS.sub("x", address)).hostname or ""
        except ValueError:
            continue
        if _PRIVATE.search(host):
            yield Problem(
                "link_private",
                "This link leads into your Notion workspace: readers cannot open it. Publish the page and"
                " link to its notion.site address, or take the link out.",
                address,
            )
    for words in letter.seen.words:
        if not words.linked and not words.is_code and (bare := _BARE_LINK.search(words.text)):
            address = bare[0].rstrip(".?")  # the sentence's own
            yield Problem(
                "link_without_scheme",
                f"This is no link for many readers. Write it as https://{address}.",
                address,
            )


def _pictures(letter: _Letter) -> Iterator[Problem]:
    for source, alt in letter.seen.pictures:
        if _FILE_NAME.fullmatch(alt):
            yield Problem(
                "picture_without_alt",
                "Readers who do not see this picture learn nothing of it. Describe it: in Markdown between"
                " the brackets, in Notion as its caption.",
                alt or source,
            )
    said = sum(len(words.text.split()) for words in letter.seen.words)
    if letter.seen.pictures and said < FEW_WORDS:
        yield Problem(
            "pictures_without_text",
            "The letter is a picture with hardly any words: spam filters distrust it, and many programs show"
            " no pictures. Say the essential in words too.",
        )


def _words(letter: _Letter, literals: Collection[str]) -> Iterator[Problem]:
    for words in letter.seen.words:
        if words.is_code:
            continue
        if found := _PLACEHOLDER.search(words.text):
            yield Problem(
                "placeholder_text",
                f"“{found[0]}” looks like something that was still to be written. Write it, or take it out.",
                cut(words.text, 80),
            )
        yield from _unfilled(words.text, literals)


def _unfilled(text: str, literals: Collection[str]) -> Iterator[Problem]:
    for found in _UNFILLED.finditer(text):
        if " ".join(found[0].split()) in literals:
            continue
        yield Problem(
            "variable_unfilled",
            "This goes out as it stands: it is no variable. Write {{ name }} in one style, with a name of"
            " letters, digits, _ or -.",
            found[0],
        )


def _contrast(letter: _Letter) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for words in letter.seen.words:
        pair = (words.color, words.background)
        ratio = contrast(*pair)
        if ratio < READABLE and pair not in seen:
            seen.add(pair)
            yield Problem(
                "contrast_low",
                f"These words are hard to read: a contrast of {ratio:.1f}, where {READABLE} is the least."
                " Choose another colour for them or for what is behind them.",
                cut(words.text, 80),
            )
