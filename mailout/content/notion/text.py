"""Nodes → plain text that reads well on its own: lines, with a blank one between things."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mailout.content.notion.equations import readable
from mailout.content.notion.nodes import (
    Bullets,
    Button,
    Callout,
    Card,
    Code,
    Columns,
    Contents,
    Equation,
    Heading,
    Item,
    Nodes,
    Numbers,
    Paragraph,
    Picture,
    Quote,
    Rule,
    Table,
    ToDos,
    Toggle,
)
from mailout.content.notion.rich_text import Spans, inline_text, plain, with_address
from mailout.content.plaintext import screen_width

WIDTH = 76
"""A table wider than this is written row by row."""

_ROMAN = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"),
        strict=True,
    )
)
_UNDERLINES = {1: "=", 2: "-", 3: "~", 4: "."}

Lines = list[str]


def nodes_text(nodes: Nodes) -> str:
    return "\n".join(_lines(nodes)).strip("\n")


def _lines(nodes: Nodes) -> Lines:
    lines: Lines = []
    for node in nodes:
        own = _WRITERS[type(node)](node)
        if own and lines:
            lines.append("")
        lines.extend(own)
    return lines


def _words(spans: Spans) -> Lines:
    text = inline_text(spans)
    return [line.rstrip() for line in text.split("\n")] if text.strip() else []


def _paragraph(node: Paragraph) -> Lines:
    return _stacked(_words(node.spans), _hang(_lines(node.children), "  ", "  "))


def _heading(node: Heading) -> Lines:
    words = [line for line in _words(node.spans) if line.strip()]
    if words:
        longest = max(screen_width(line) for line in words)
        words.append(_UNDERLINES[node.level] * min(longest, WIDTH))
    return _stacked(words, _lines(node.children))


def _bullets(node: Bullets) -> Lines:
    return _marked(("- ", item) for item in node.items)


def _numbers(node: Numbers) -> Lines:
    numbers = [_number(node.start + place, node.style) for place in range(len(node.items))]
    width = max((len(number) for number in numbers), default=0)
    marks = (f"{number}.".ljust(width + 2) for number in numbers)
    return _marked(zip(marks, node.items, strict=True))


def _todos(node: ToDos) -> Lines:
    return _marked(("☑ " if item.checked else "☐ ", item) for item in node.items)


def _marked(items: Iterable[tuple[str, Item]]) -> Lines:
    """Items one under another; a blank line only around what is more than a list."""
    lines: Lines = []
    for mark, item in items:
        own = _words(item.spans) or [""]
        for child in item.children:
            below = _lines((child,))
            if below and not isinstance(child, Bullets | Numbers | ToDos):
                own.append("")
            own.extend(below)
        lines.extend(_hang(own, mark, " " * len(mark)))
    return lines


def _toggle(node: Toggle) -> Lines:
    return _stacked(_hang(_words(node.spans) or [""], "▾ ", "  "), _hang(_lines(node.children), "  ", "  "))


def _quote(node: Quote) -> Lines:
    return _hang(_stacked(_words(node.spans), _lines(node.children)), "> ", "> ", blank=">")


def _callout(node: Callout) -> Lines:
    icon = plain(node.icon)
    mark = f"{icon} " if icon else ""
    return _hang(_stacked(_words(node.spans), _lines(node.children)), mark, "   " if icon else "")


def _button(node: Button) -> Lines:
    return [f"→ {with_address(plain(node.spans), node.url)}"]


def _code(node: Code) -> Lines:
    source = "".join(span.text for span in node.spans)
    return _stacked(_hang(source.rstrip("\n").split("\n"), "    ", "    "), _words(node.caption))


def _equation(node: Equation) -> Lines:
    return _hang((readable(node.expression) or node.expression).split("\n"), "    ", "    ")


def _rule(_: Rule) -> Lines:
    return ["* * *"]


def _picture(node: Picture) -> Lines:
    lines = [f"[{node.alt}] {node.url}"]
    caption = inline_text(node.caption)
    return lines if not caption or caption == node.alt else [*lines, caption]


def _card(node: Card) -> Lines:
    lines = [f"{node.sign} {with_address(node.name, node.url)}"]
    if node.caption and plain(node.caption) != node.name:
        lines.extend(f"   {line}" for line in _words(node.caption))
    return lines


def _columns(node: Columns) -> Lines:
    """One after another: text has one column."""
    lines: Lines = []
    for column in node.columns:
        lines = _stacked(lines, _lines(column.children))
    return lines


def _contents(node: Contents) -> Lines:
    top = min(level for level, _ in node.entries)
    return [f"{'  ' * (level - top)}- {words}" for level, words in node.entries]


# ── Tables ───────────────────────────────────────────────────────────────────────────────────────


def _table(node: Table) -> Lines:
    rows = [[" ".join(inline_text(cell).split()) for cell in row] for row in node.rows]
    widths = [max(screen_width(cell) for cell in column) for column in zip(*rows, strict=True)]
    if sum(widths) + 3 * (len(widths) - 1) <= WIDTH:
        return _aligned(rows, widths, node.header_row)
    return _row_by_row(rows, node.header_row)


def _aligned(rows: Sequence[Sequence[str]], widths: Sequence[int], header_row: bool) -> Lines:
    lines = [
        " | ".join(
            cell + " " * (width - screen_width(cell)) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
    if header_row:
        lines.insert(1, "-+-".join("-" * width for width in widths))
    return lines


def _row_by_row(rows: Sequence[Sequence[str]], header_row: bool) -> Lines:
    """Row by row, each cell after its column's name."""
    names, body = (rows[0], rows[1:]) if header_row else ([""] * len(rows[0]), rows)
    lines: Lines = []
    for row in body or [rows[0]]:
        cells = [f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=True) if cell]
        lines = _stacked(lines, cells)
    return lines


# ── Lines ────────────────────────────────────────────────────────────────────────────────────────


def _stacked(above: Lines, below: Lines) -> Lines:
    return [*above, "", *below] if above and below else above or below


def _hang(lines: Lines, first: str, rest: str, *, blank: str = "") -> Lines:
    """A mark before the first line, the others under it; blank lines stay blank (or `blank`)."""
    marked = [f"{rest}{line}" if line else blank for line in lines]
    if lines:
        marked[0] = f"{first}{lines[0]}"
    return marked


def _number(value: int, style: str) -> str:
    if style == "letters" and value > 0:
        return _letters(value)
    if style == "roman" and 0 < value < 4000:
        return _roman(value)
    return str(value)


def _letters(value: int) -> str:
    letters = ""
    while value > 0:
        value, rest = divmod(value - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return letters


def _roman(value: int) -> str:
    written = ""
    for worth, sign in _ROMAN:
        times, value = divmod(value, worth)
        written += sign * times
    return written


_WRITERS: Mapping[type, Callable[[Any], Lines]] = {
    Paragraph: _paragraph,
    Heading: _heading,
    Bullets: _bullets,
    Numbers: _numbers,
    ToDos: _todos,
    Toggle: _toggle,
    Quote: _quote,
    Callout: _callout,
    Button: _button,
    Code: _code,
    Equation: _equation,
    Rule: _rule,
    Picture: _picture,
    Card: _card,
    Table: _table,
    Columns: _columns,
    Contents: _contents,
}
