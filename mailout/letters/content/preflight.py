"""What an author should look at before a letter leaves: where, and what to do. Little of it stops one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import unquote

from mailout.base.errors import AbortCode
from mailout.letters.content.checks import check_content
from mailout.letters.content.colors import READABLE, contrast
from mailout.letters.content.document import CAPTIONED, UNFILLED, Document, Problem, cut, preheader_of
from mailout.letters.content.model import ANY_MARK, Content
from mailout.letters.content.plaintext import BLOCKS, VOID
from mailout.letters.content.refs import split_address
from mailout.letters.content.variables import as_written, meant_variable

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
_APART = BLOCKS | {"br", "td", "th"}
_NO_BRACES = str.maketrans("{}", "()")
_UNFILLED = re.compile(r"\{\{[^{}]{0,80}\}\}?|\{[^{}]{0,80}\}\}")
_FILE_NAME = re.compile(r"(?:image|picture|img)?|.*\.(?:png|jpe?g|gif|webp|avif|svg|heic)", re.IGNORECASE)
_PRIVATE = re.compile(r"(?:^|\.)notion\.(?:so|com)$", re.IGNORECASE)
_EXPIRES = re.compile(r"[?&](?:X-Amz-Expires|expirationTimestamp)=|//www\.notion\.so/image/", re.IGNORECASE)
"""Addresses of files that Notion hosts, as one copies them from a browser."""
_COLOR = re.compile(r"(?:^|;)\s*(color|background-color)\s*:\s*(#[0-9a-fA-F]{6})")


def findings(document: Document, content: Content) -> tuple[Problem, ...]:
    """Everything there is to look at: what its source could not show, then what it says itself."""
    letter = _Letter()
    letter.feed(content.html)
    letter.close()
    found = (
        *document.problems,
        *(problem for problem in check_content(content) if problem.code != "picture_without_alt"),
        *_subject(content, document),
        *_links(letter, document.literals),
        *_pictures(letter),
        *_words(letter, document.literals),
        *_contrast(letter),
    )
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class _Style:
    """How words look, by all that is open around them."""

    color: str = "#000000"
    background: str = "#ffffff"
    linked: bool = False
    is_code: bool = False


class _Letter(HTMLParser):
    """What a reader sees between masthead and footer, in its colours. The HTML is ours: well-formed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[tuple[str, _Style]] = []
        self.blocks: list[str] = [""]  # the words of each, whatever their styles; code without its braces
        self.links: list[str] = []
        self.sources: list[str] = []  # of all pictures
        self.pictures: list[tuple[str, str]] = []  # address, alt; of those without a caption
        self._open: list[tuple[str, _Style]] = []  # by tag
        self._inside = 0  # how many elements were open when the letter's own began; 0: not in it

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self._begin_block(tag)
        if tag == "img" and self._inside:
            self.sources.append(given.get("src", ""))
        if tag == "img" and self._inside and CAPTIONED not in given.get("class", "").split():
            self.pictures.append((given.get("src", ""), given.get("alt", "").strip()))
        if tag in VOID:
            return
        above = self._open[-1][1] if self._open else _Style()
        colors = dict(_COLOR.findall(given.get("style", "")))
        style = _Style(
            colors.get("color", above.color).lower(),
            colors.get("background-color", above.background).lower(),
            above.linked or tag == "a" or BESIDE_A_LINK in given.get("class", "").split(),
            above.is_code or tag in ("code", "pre"),
        )
        self._open.append((tag, style))
        if tag == "a" and self._inside and given.get("href"):
            self.links.append(given["href"])
        if tag == "td" and "card" in given.get("class", "").split():
            self._inside = len(self._open)

    def handle_endtag(self, tag: str) -> None:
        self._begin_block(tag)
        while self._open:
            closed, _ = self._open.pop()
            if len(self._open) < self._inside:
                self._inside = 0
            if closed == tag:
                return

    def handle_data(self, data: str) -> None:
        if not self._inside:
            return
        style, said = self._open[-1][1], _without_marks(data)
        self.blocks[-1] += said.translate(_NO_BRACES) if style.is_code else said
        if data.strip():
            self.words.append((" ".join(said.split()), style))

    def _begin_block(self, tag: str) -> None:
        if tag in _APART and self.blocks[-1]:
            self.blocks.append("")


def _without_marks(text: str) -> str:
    """Filled variables are no words of the letter's own."""
    return re.sub(ANY_MARK, "…", text)


def _subject(content: Content, document: Document) -> Iterator[Problem]:
    subject = as_written(content.subject)
    if len(subject) > LONG_SUBJECT:
        yield Problem(
            "subject_long",
            f"The subject has {len(subject)} characters; phones show about {LONG_SUBJECT}. Say the most"
            " important thing first, or make it shorter.",
            subject,
        )
    yield from _unfilled(_without_marks(content.subject), document.literals)
    if document.preheader != preheader_of(document.text_body):  # its author's own, in which nothing is code
        yield from _unfilled(_without_marks(document.preheader), document.literals)


def _links(letter: _Letter, literals: Collection[str]) -> Iterator[Problem]:
    for address in dict.fromkeys(letter.links):
        yield from _unfilled(unquote(_without_marks(address)), literals)
        if _PRIVATE.search(split_address(re.sub(ANY_MARK, "x", address)).hostname or ""):
            yield Problem(
                "link_private",
                "This link leads into your Notion workspace: readers cannot open it. Publish the page and"
                " link to its notion.site address, or take the link out.",
                address,
            )
        elif _EXPIRES.search(address):
            yield Problem(
                "link_private",
                "This link expires soon: readers could not open it. Put the file itself into the letter, or"
                " link to an address that stays.",
                address.partition("?")[0],
            )
    for text, style in letter.words:
        if not style.linked and not style.is_code and (bare := _BARE_LINK.search(text)):
            address = bare[0].rstrip(".?")  # the sentence's own
            yield Problem(
                "link_without_scheme",
                f"This is no link for many readers. Write it as https://{address}.",
                address,
            )


def _pictures(letter: _Letter) -> Iterator[Problem]:
    for source, alt in letter.pictures:
        if _FILE_NAME.fullmatch(alt):
            yield Problem(
                "picture_without_alt",
                "Readers who do not see this picture learn nothing of it. Describe it: in Markdown between"
                " the brackets, in Notion as its caption.",
                alt or source,
            )
    for source in dict.fromkeys(filter(_EXPIRES.search, letter.sources)):
        yield Problem(
            "picture_dropped",
            "This picture's address expires within an hour. Put the picture itself into the letter.",
            source.partition("?")[0],
            stops=AbortCode.MEDIA_UNAVAILABLE,
        )
    said = sum(len(text.split()) for text, _ in letter.words)
    if letter.pictures and said < FEW_WORDS:
        yield Problem(
            "pictures_without_text",
            "The letter is a picture with hardly any words: spam filters distrust it, and many programs show"
            " no pictures. Say the essential in words too.",
        )


def _words(letter: _Letter, literals: Collection[str]) -> Iterator[Problem]:
    for text, style in letter.words:
        if style.is_code:
            continue
        if found := _PLACEHOLDER.search(text):
            yield Problem(
                "placeholder_text",
                f"“{found[0]}” looks like something that was still to be written. Write it, or take it out.",
                cut(text, 80),
            )
    for block in letter.blocks:
        yield from _unfilled(block, literals)


def _unfilled(text: str, literals: Collection[str]) -> Iterator[Problem]:
    for found in _UNFILLED.finditer(text):
        written = " ".join(found[0].split())
        if written in literals:
            continue
        meant = meant_variable(written)
        instead = meant.written if meant else "{{ name }}, the name of letters, digits, _ or -"
        said = f"This is no variable: readers would see its braces. Write {instead}, in one style."
        yield Problem(UNFILLED, said, written)


def _contrast(letter: _Letter) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for text, style in letter.words:
        pair = (style.color, style.background)
        ratio = contrast(*pair)
        if ratio < READABLE and pair not in seen:
            seen.add(pair)
            yield Problem(
                "contrast_low",
                f"These words are hard to read: a contrast of {ratio:.1f}, where {READABLE} is the least."
                " Choose another colour for them or for what is behind them.",
                cut(text, 80),
            )
