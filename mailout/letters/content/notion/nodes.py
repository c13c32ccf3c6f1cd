"""The nodes of a page: what remains of Notion's thirty block types once they are understood.

Each writes itself twice: as HTML that mail clients show (tables for columns and boxes, lists as lists, no
flex, no grid) and as text that reads well on its own. The layout styles what HTML has an element for; classes
are for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from mailout.letters.content.notion.rich_text import Spans, inline_html, inline_text, plain
from mailout.letters.content.notion.styles import color_class
from mailout.letters.content.pictures import COLUMN
from mailout.letters.content.plaintext import screen_width

BOX = '<table role="presentation" cellpadding="0" cellspacing="0" border="0"'
WIDTH = 76
"""Columns of text."""


@dataclass(frozen=True, slots=True)
class NodePlace:
    """Where in the page a node stands."""

    width: int = COLUMN
    depth: int = 0  # how many times it is indented

    def deeper(self, by: int = 26) -> NodePlace:
        return NodePlace(self.width - by, self.depth + 1)


TOP = NodePlace()


class Node(Protocol):
    def html(self, place: NodePlace) -> str: ...
    def lines(self) -> list[str]:
        """As text; none: it says nothing there."""


class Written:
    """A node that looks the same wherever it stands."""

    def __init__(self, html: str, lines: list[str]) -> None:
        self._html, self._lines = html, lines

    def html(self, _: NodePlace = TOP) -> str:
        return self._html

    def lines(self) -> list[str]:
        return self._lines


Nodes = tuple[Node, ...]


def nodes_html(nodes: Nodes, place: NodePlace = TOP) -> str:
    return "\n".join(node.html(place) for node in nodes)


def lines_of(nodes: Nodes) -> list[str]:
    """A blank line between things."""
    lines: list[str] = []
    for node in nodes:
        own = node.lines()
        if own and lines:
            lines.append("")
        lines.extend(own)
    return lines


def stacked(above: list[str], below: list[str]) -> list[str]:
    return [*above, "", *below] if above and below else above or below


def hang(lines: list[str], first: str, rest: str, *, blank: str = "") -> list[str]:
    """A mark before the first line, the others under it; blank lines stay blank (or `blank`)."""
    marked = [f"{rest}{line}" if line else blank for line in lines]
    if lines:
        marked[0] = f"{first}{lines[0]}"
    return marked


def words_of(spans: Spans) -> list[str]:
    text = inline_text(spans)
    return [line.rstrip() for line in text.split("\n")] if text.strip() else []


def class_of(color: str, name: str = "", *, filled: bool = False) -> str:
    """The attribute for one of Notion's colours. `filled`: a background needs some room around the words."""
    colored = color_class(color) or ""
    room = "n-filled" if filled and colored.startswith("n-bg-") else ""
    names = " ".join(one for one in (name, colored, room) if one)
    return f' class="{names}"' if names else ""


# ── Words ────────────────────────────────────────────────────────────────────────────────────────

DEEP = 5
"""From this depth on lists are indented less, so that words keep some room on a phone."""

_ROMAN = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"),
        strict=True,
    )
)
_UNDERLINES = {1: "=", 2: "-", 3: "~", 4: "."}


@dataclass(frozen=True, slots=True)
class Words:
    """Rich text, in one of Notion's colours, and what hangs from it."""

    spans: Spans
    color: str = "default"
    children: Nodes = ()

    def _element(self, tag: str, words: str) -> str:
        return f"<{tag}{class_of(self.color, filled=True)}>{words}</{tag}>"

    def _children_html(self, place: NodePlace) -> str:
        if not self.children:
            return ""
        margin = ' class="n-indent"' if place.depth < DEEP else ""
        return f"\n<div{margin}>\n{nodes_html(self.children, place.deeper(22))}\n</div>"

    def _in_a_box(self, place: NodePlace) -> str:
        """The words are a paragraph of their own once something follows them."""
        words = inline_html(self.spans)
        if words and self.children:
            words = f"<p>{words}</p>"
        return _with_children(words, self.children, place)

    def _all_lines(self) -> list[str]:
        return stacked(words_of(self.spans), lines_of(self.children))


def _with_children(words: str, children: Nodes, place: NodePlace) -> str:
    return "\n".join(part for part in (words, nodes_html(children, place)) if part)


class Paragraph(Words):
    @property
    def is_blank(self) -> bool:
        return not self.children and not "".join(span.text for span in self.spans).strip()

    def html(self, place: NodePlace) -> str:
        return self._element("p", inline_html(self.spans) or "&#160;") + self._children_html(place)

    def lines(self) -> list[str]:
        return stacked(words_of(self.spans), hang(lines_of(self.children), "  ", "  "))


@dataclass(frozen=True, slots=True)
class Heading(Words):
    """Its children are what a toggleable one holds."""

    level: int = 1  # to 4

    def html(self, place: NodePlace) -> str:
        heading = self._element(f"h{self.level}", inline_html(self.spans)) if self.spans else ""
        return heading + self._children_html(place)

    def lines(self) -> list[str]:
        words = [line for line in words_of(self.spans) if line.strip()]
        if words:
            longest = max(screen_width(line) for line in words)
            words.append(_UNDERLINES[self.level] * min(longest, WIDTH))
        return stacked(words, lines_of(self.children))


class Toggle(Words):
    """Shown open: a mail cannot fold."""

    def html(self, place: NodePlace) -> str:
        return self._element("p", f"▾ {inline_html(self.spans)}") + self._children_html(place)

    def lines(self) -> list[str]:
        words = hang(words_of(self.spans) or [""], "▾ ", "  ")
        return stacked(words, hang(lines_of(self.children), "  ", "  "))


class Quote(Words):
    def html(self, place: NodePlace) -> str:
        return self._element("blockquote", self._in_a_box(place.deeper(19)))

    def lines(self) -> list[str]:
        return hang(self._all_lines(), "> ", "> ", blank=">")


@dataclass(frozen=True, slots=True)
class Callout(Words):
    icon: Spans = ()

    def html(self, place: NodePlace) -> str:
        shown = inline_html(self.icon).strip()
        icon = f'<td class="n-icon" valign="top" width="24">{shown}</td>' if self.icon else ""
        box = f'{BOX} width="100%"{class_of(self.color, "n-callout")}>'
        body = self._in_a_box(place.deeper(72))
        return f'{box}<tr>{icon}<td class="n-said" valign="top">{body}</td></tr></table>'

    def lines(self) -> list[str]:
        icon = plain(self.icon)
        return hang(self._all_lines(), f"{icon} " if icon else "", "   " if icon else "")


# ── Lists ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Item(Words):
    checked: bool = False  # of a to-do


@dataclass(frozen=True, slots=True)
class Items:
    items: tuple[Item, ...]

    def _list(self, tag: str, attributes: str, place: NodePlace) -> str:
        deep = ' class="n-deep"' if place.depth >= DEEP else ""
        inside = place.deeper()
        items = "\n".join(
            f"<li{class_of(one.color)}>{_with_children(inline_html(one.spans), one.children, inside)}</li>"
            for one in self.items
        )
        return f"<{tag}{deep}{attributes}>\n{items}\n</{tag}>"

    def _marked(self, marks: Iterable[str]) -> list[str]:
        """Items one under another; a blank line only around what is more than a list."""
        lines: list[str] = []
        for mark, item in zip(marks, self.items, strict=True):
            own = words_of(item.spans) or [""]
            for child in item.children:
                below = child.lines()
                if below and not isinstance(child, Items):
                    own.append("")
                own.extend(below)
            lines.extend(hang(own, mark, " " * len(mark)))
        return lines


class Bullets(Items):
    def html(self, place: NodePlace) -> str:
        return self._list("ul", "", place)

    def lines(self) -> list[str]:
        return self._marked("- " for _ in self.items)


@dataclass(frozen=True, slots=True)
class Numbers(Items):
    start: int = 1
    style: str = "numbers"  # or letters, roman

    def html(self, place: NodePlace) -> str:
        start = f' start="{self.start}"' if self.start != 1 else ""
        style = {"letters": ' type="a"', "roman": ' type="i"'}.get(self.style, "")
        return self._list("ol", start + style, place)

    def lines(self) -> list[str]:
        numbers = [_number(self.start + place, self.style) for place in range(len(self.items))]
        width = max((len(number) for number in numbers), default=0)
        return self._marked(f"{number}.".ljust(width + 2) for number in numbers)


class ToDos(Items):
    def html(self, place: NodePlace) -> str:
        rows = "\n".join(self._row(item, place.deeper()) for item in self.items)
        return f'{BOX} class="n-todos">\n{rows}\n</table>'

    def lines(self) -> list[str]:
        return self._marked("☑ " if item.checked else "☐ " for item in self.items)

    def _row(self, item: Item, place: NodePlace) -> str:
        words = inline_html(item.spans)
        if item.checked:
            words = f'<span class="n-done">{words}</span>'
        return (
            f'<tr><td class="n-box" valign="top">{"☑" if item.checked else "☐"}</td>'
            f'<td{class_of(item.color, "n-todo")} valign="top">'
            f"{_with_children(words, item.children, place)}</td></tr>"
        )


def _number(value: int, style: str) -> str:
    written = ""
    if style == "letters" and value > 0:
        while value > 0:
            value, rest = divmod(value - 1, 26)
            written = chr(ord("a") + rest) + written
        return written
    if style == "roman" and 0 < value < 4000:
        for worth, sign in _ROMAN:
            times, value = divmod(value, worth)
            written += sign * times
        return written
    return str(value)
