"""What every node of a page shares: its place in the HTML, and how lines of text are put together.

A node is what is left of Notion's thirty block types once they are understood. Each writes itself twice: as
HTML that mail clients show (tables for columns and boxes, lists as lists, no flex, no grid) and as text that
reads well on its own. The layout styles what HTML has an element for; classes are for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mailout.letters.content.notion.rich_text import Spans, inline_html, inline_text
from mailout.letters.content.notion.styles import color_class
from mailout.letters.content.pictures import COLUMN

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
        ...


Nodes = tuple[Node, ...]


def nodes_html(nodes: Nodes, place: NodePlace = TOP) -> str:
    return "\n".join(node.html(place) for node in nodes)


def nodes_text(nodes: Nodes) -> str:
    return "\n".join(lines_of(nodes)).strip("\n")


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


def caption_html(spans: Spans) -> str:
    return f'<p class="caption">{inline_html(spans)}</p>' if spans else ""


def class_of(color: str, name: str = "", *, filled: bool = False) -> str:
    """The attribute for one of Notion's colours. `filled`: a background needs some room around the words."""
    colored = color_class(color) or ""
    room = "n-filled" if filled and colored.startswith("n-bg-") else ""
    names = " ".join(one for one in (name, colored, room) if one)
    return f' class="{names}"' if names else ""
