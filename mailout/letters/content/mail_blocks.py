"""Blocks as mail programs need them: boxes that keep their padding in Outlook and scroll on a phone, words
that break, lines that begin where their language begins.

All of it works on well-formed HTML, after the text part was made from it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape

from mailout.letters.content.model import ANY_MARK, MARK_CLOSE, MARK_OPEN
from mailout.letters.content.plaintext import VOID

_TAG = re.compile(r'(<!--.*?-->|<[a-zA-Z/][^<>"]*(?:"[^"]*"[^<>"]*)*>)', re.DOTALL)
_NAME = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:]*)")
LONG_WORD = re.compile(rf"{ANY_MARK}|[^\s<>&;{MARK_OPEN}{MARK_CLOSE}]{{40,}}")
BREAK_CHARS = 20
"""Letters of a long word after which it may break: Yahoo knows no `overflow-wrap`."""
BOX = '<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0"'
_DIRECTED = "p h1 h2 h3 h4 h5 h6 ul ol li dl dt dd td th blockquote summary figcaption"
DIRECTED = frozenset(_DIRECTED.split())
_CLASS = re.compile(r' class="([^"]*)"')


def for_mail(body: str, direction: str = "ltr") -> str:
    """A letter's body as its layout shows it."""
    return _breakable(_boxed(directed(body, direction)))


# ── Boxes ────────────────────────────────────────────────────────────────────────────────────────


def _boxed(body: str) -> str:
    """Outlook keeps padding in table cells alone, and breaks no line of a `<pre>`."""
    made: list[str] = []
    tables, in_code = 0, False
    for part in _TAG.split(body):
        tag = _NAME.match(part)
        name, closes = (tag[2].lower(), bool(tag[1])) if tag else ("", False)
        if name == "pre":
            in_code = not closes
            made.append("</code></td></tr></table>" if closes else _opened("code", part, "<code>"))
        elif in_code:
            made.append(part if name and name != "code" else "" if name else _code_lines(part))
        elif name == "blockquote":
            made.append(
                "</blockquote></td></tr></table>" if closes else _opened("quote", part, "<blockquote>")
            )
        elif name == "table" and (tables or "role=" not in part):
            tables += -1 if closes else 1
            if closes:
                made.append(f"{part}</div></td></tr></table>" if not tables else part)
            else:
                made.append(f'{BOX} class="wide"><tr><td><div class="scroll">{part}' if tables == 1 else part)
        else:
            made.append(part)
    return "".join(made)


def _opened(name: str, tag: str, inside: str) -> str:
    """A table of one cell, which has the classes and the direction of what it stands for."""
    given = _CLASS.search(tag)
    classes = f"{name}-in {given[1]}" if given else f"{name}-in"
    direction = ' dir="rtl"' if 'dir="rtl"' in tag else ""
    return f'{BOX} class="{name}"><tr><td class="{classes}"{direction}>{inside}'


def _code_lines(source: str) -> str:
    """Lines end by themselves; Outlook sees how far they are indented, and others copy plain spaces."""
    lines = source.rstrip("\n").split("\n")
    return "<br>".join(re.sub(r"^( +)(?=\S)", _indent, line) for line in lines)


def _indent(found: re.Match[str]) -> str:
    return f"<!--[if mso]>{chr(0xA0) * len(found[1])}<![endif]-->{found[1]}"


def _breakable(body: str) -> str:
    def broken(found: re.Match[str]) -> str:
        word = found[0]
        if word.startswith(MARK_OPEN):
            return word
        return "<wbr>".join(word[start : start + BREAK_CHARS] for start in range(0, len(word), BREAK_CHARS))

    return "".join(part if part.startswith("<") else LONG_WORD.sub(broken, part) for part in _TAG.split(body))


# ── Right to left ────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Open:
    place: int  # among the parts
    name: str
    given: bool  # its author said which way
    text: list[str] = field(default_factory=list)


def direction_of(text: str) -> str | None:
    """By the first letter that has one."""
    for letter in unescape(re.sub(ANY_MARK, "", text)):
        kind = unicodedata.bidirectional(letter)
        if kind in ("R", "AL"):
            return "rtl"
        if kind == "L":
            return "ltr"
    return None


def is_right_to_left(text: str) -> bool:
    """A letter as a whole: by most of its letters."""
    kinds = [unicodedata.bidirectional(letter) for letter in re.sub(ANY_MARK, "", text)]
    return sum(kind in ("R", "AL") for kind in kinds) > kinds.count("L")


def directed(body: str, base: str) -> str:
    """Blocks whose words run against the letter say so; what the author said stays."""
    parts = _TAG.split(body)
    ways = dict(_ways(parts))
    if base == "ltr" and "rtl" not in ways.values():
        return body
    for place, way in ways.items():
        if way == "rtl" or base == "rtl":
            parts[place] = re.sub(r"^<([a-zA-Z0-9]+)", rf'<\1 dir="{way}"', parts[place])
    return "".join(parts)


def _ways(parts: list[str]) -> Iterator[tuple[int, str]]:
    """The direction of each block that says none, by its place among the parts."""
    still_open: list[_Open] = []
    for place, part in enumerate(parts):
        tag = _NAME.match(part)
        if tag is None:
            for one in still_open:
                one.text.append(part[:200])
            continue
        name = tag[2].lower()
        if tag[1]:
            while still_open:
                closed = still_open.pop()
                way = direction_of("".join(closed.text))
                if way and closed.name in DIRECTED and not closed.given:
                    yield closed.place, way
                if closed.name == name:
                    break
        elif name not in VOID:
            still_open.append(_Open(place, name, " dir=" in part))
