"""Raw HTML in a Markdown text: which tags are markup, and which are words that somebody wrote.

`Dear <Name>, if x<y then z>w` is a sentence. A tag that mail does not carry, or that is opened and never
closed, is shown as it was written; what is taken out without being shown is named in a finding.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape, unescape

import nh3
from markdown_it.common.html_re import HTML_TAG_RE
from markdown_it.token import Token

from mailout.letters.content.document import Problem
from mailout.letters.content.plaintext import VOID

TAGS = frozenset(nh3.ALLOWED_TAGS - {"area", "map"})
ATTRIBUTES: Mapping[str, frozenset[str]] = {
    "*": frozenset({"dir", "lang"}),
    "a": frozenset({"href", "title"}),
    "abbr": frozenset({"title"}),
    "img": frozenset({"align", "alt", "height", "src", "title", "width"}),
    "ol": frozenset({"start"}),
    "td": frozenset({"align", "colspan", "rowspan"}),
    "th": frozenset({"align", "colspan", "rowspan", "scope"}),
}
"""What mail may carry, by tag."""
TABLE_PARTS = frozenset({"caption", "col", "colgroup", "tbody", "td", "tfoot", "th", "thead", "tr"})
END_IS_OPTIONAL = frozenset({"colgroup", "dd", "dt", "li", "p", "tbody", "td", "tfoot", "th", "thead", "tr"})

_NAME = re.compile(r"</?([A-Za-z][A-Za-z0-9-]*)")
_ATTRIBUTE = re.compile(r"""\s([a-zA-Z_:][\w:.-]*)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'=<>`]+))?""")
_WORD = re.compile(r"\w")


@dataclass(slots=True)
class _Piece:
    """Some raw HTML: one tag or comment, or what stands between two."""

    written: str
    is_inline: bool  # within a paragraph
    name: str = ""  # of a tag; empty: no tag
    closes: bool = False
    is_markup: bool = False

    @property
    def shown(self) -> str:
        if self.is_markup:
            return self.written
        return escape(self.written) if self.name or self.is_inline else self.written.replace("<", "&lt;")


def settle(tokens: Sequence[Token]) -> list[Problem]:
    """Changes the tokens: what is no markup is escaped. Returns what readers will not see."""
    held = [(token, _pieces(token.content, token.type)) for token in _raw(tokens)]
    pieces = [piece for _, group in held for piece in group]
    _match(pieces)
    _require_tables(pieces)
    problems = [problem for piece in pieces for problem in _taken_out(piece)]
    for token, group in held:
        token.content = "".join("" if _is_comment(piece) else piece.shown for piece in group)
    return problems


def addresses(html: str) -> Iterator[tuple[str, str]]:
    """(`href` or `src`, its value) of the links and pictures in HTML whose every `<` begins a tag."""
    for tag in HTML_TAG_RE.findall(html):
        name = _NAME.match(tag)
        allowed = ATTRIBUTES.get(name[1].lower(), frozenset()) if name else frozenset()
        for attribute, value in _ATTRIBUTE.findall(tag):
            if attribute.lower() in allowed & {"href", "src"}:
                yield attribute.lower(), unescape(value.strip("\"'"))


def _raw(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        if token.type in ("html_block", "html_inline"):
            yield token
        elif token.type == "inline":
            yield from _raw(token.children or ())


def _pieces(content: str, kind: str) -> list[_Piece]:
    pieces, end, is_inline = [], 0, kind == "html_inline"
    while (start := content.find("<", end)) >= 0:
        found = HTML_TAG_RE.match(content, start)
        if found is None:
            pieces.append(_Piece(content[end : start + 1], is_inline=False))
            end = start + 1
            continue
        if start > end:
            pieces.append(_Piece(content[end:start], is_inline=False))
        name = _NAME.match(found[0])
        pieces.append(
            _Piece(found[0], is_inline or not name, name[1].lower() if name else "", found[0][1] == "/")
        )
        end = found.end()
    return [*pieces, _Piece(content[end:], is_inline=False)]


def _match(pieces: Sequence[_Piece]) -> None:
    """A tag is markup where mail may carry it, and where its other half is there."""
    still_open: defaultdict[str, list[_Piece]] = defaultdict(list)
    for piece in pieces:
        if piece.name not in TAGS:
            continue
        if piece.name in VOID:
            piece.is_markup = not piece.closes
        elif not piece.closes:
            still_open[piece.name].append(piece)
            piece.is_markup = piece.name in END_IS_OPTIONAL and not piece.is_inline
        elif still_open[piece.name]:
            still_open[piece.name].pop().is_markup = piece.is_markup = True


def _require_tables(pieces: Sequence[_Piece]) -> None:
    """Outside of a table, browsers drop its parts."""
    depth = 0
    for piece in pieces:
        if piece.name == "table" and piece.is_markup:
            depth += -1 if piece.closes else 1
        elif piece.name in TABLE_PARTS and not depth:
            piece.is_markup = False


def _is_comment(piece: _Piece) -> bool:
    return piece.written.startswith("<!--") and piece.written.endswith("-->")


def _taken_out(piece: _Piece) -> Iterator[Problem]:
    if _is_comment(piece) and _WORD.search(piece.written):
        yield Problem("comment_dropped", "Readers do not see this comment.", piece.written.strip("<!-> \n"))
    if not piece.is_markup or piece.closes:
        return
    allowed = ATTRIBUTES["*"] | ATTRIBUTES.get(piece.name, frozenset())
    if any(name.lower() not in allowed for name, _ in _ATTRIBUTE.findall(piece.written)):
        message = "Mail does not carry all that this tag asks for; its words stay."
        yield Problem("attribute_dropped", message, piece.written)
