"""What a page is made of once Notion's thirty block types are understood: fewer things.

The spans are rich text; `color` is one of Notion's names for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from mailout.content.notion.rich_text import Spans


@dataclass(frozen=True, slots=True)
class Paragraph:
    spans: Spans
    color: str = "default"
    children: Nodes = ()


@dataclass(frozen=True, slots=True)
class Heading:
    level: int  # 1 to 4
    spans: Spans
    color: str = "default"
    children: Nodes = ()  # what a toggleable heading holds


@dataclass(frozen=True, slots=True)
class Item:
    spans: Spans
    color: str = "default"
    children: Nodes = ()
    checked: bool = False  # of a to-do


@dataclass(frozen=True, slots=True)
class Bullets:
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Numbers:
    items: tuple[Item, ...]
    start: int = 1
    style: str = "numbers"  # or letters, roman


@dataclass(frozen=True, slots=True)
class ToDos:
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Toggle:
    """Shown open: a mail cannot fold."""

    spans: Spans
    color: str = "default"
    children: Nodes = ()


@dataclass(frozen=True, slots=True)
class Quote:
    spans: Spans
    color: str = "default"
    children: Nodes = ()


@dataclass(frozen=True, slots=True)
class Callout:
    icon: Spans
    spans: Spans
    color: str = "default"
    children: Nodes = ()


@dataclass(frozen=True, slots=True)
class Button:
    """A link that stands alone in a callout."""

    spans: Spans
    url: str


@dataclass(frozen=True, slots=True)
class Code:
    spans: Spans
    caption: Spans = ()


@dataclass(frozen=True, slots=True)
class Equation:
    expression: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A line across."""


@dataclass(frozen=True, slots=True)
class Picture:
    url: str
    alt: str
    caption: Spans = ()


@dataclass(frozen=True, slots=True)
class Card:
    """What a mail cannot play or embed: a sign of what it is, its name (if it has one), its address."""

    sign: str
    name: str
    url: str | None
    caption: Spans = ()


@dataclass(frozen=True, slots=True)
class Table:
    rows: tuple[tuple[Spans, ...], ...]  # all of one length
    header_row: bool = False
    header_column: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    share: float  # of the width; the shares of a row add up to 1
    children: Nodes


@dataclass(frozen=True, slots=True)
class Columns:
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """The page's headings: (level, words)."""

    entries: tuple[tuple[int, str], ...]


Node = (
    Paragraph
    | Heading
    | Bullets
    | Numbers
    | ToDos
    | Toggle
    | Quote
    | Callout
    | Button
    | Code
    | Equation
    | Rule
    | Picture
    | Card
    | Table
    | Columns
    | Contents
)
Nodes = tuple[Node, ...]
