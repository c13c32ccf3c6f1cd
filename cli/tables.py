"""One style for every table: a bold head, colour for what matters, as wide as the terminal and no wider.

Elsewhere (a file, grep) nothing is cut: a line is a row.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from cli.output import out

GAP = 2
NARROWEST = 12
"""What remains for the column that gives way, however narrow the terminal."""


@dataclass(frozen=True)
class TableRow:
    cells: Sequence[str]
    style: str = ""
    """Of the cell that says how it stands."""
    more: str = ""
    """A sentence below it, as long as it needs to be."""


@dataclass(frozen=True)
class TextTable:
    """`gives_way`: the column that is cut in a narrow terminal; `coloured`: the one with a style."""

    head: Sequence[str]
    right: frozenset[str] = frozenset()
    gives_way: str = ""
    coloured: str = ""
    indent: int = 2
    rows: list[TableRow] = field(default_factory=list)

    def add(self, *cells: str, style: str = "", more: str = "") -> None:
        self.rows.append(TableRow([_one_line(cell) for cell in cells], style, _one_line(more)))

    def show(self) -> None:
        width = out.width if out.is_terminal else None
        widths = self._widths(width)
        out.print(self._line(TableRow(self.head), widths, width), style="bold")
        for row in self.rows:
            out.print(self._line(row, widths, width))
            if row.more:
                out.print(_below(row.more, self.indent, width), style="dim")

    def _widths(self, width: int | None) -> list[int]:
        lines = (self.head, *(row.cells for row in self.rows))
        widths = [max(cell_len(line[column]) for line in lines) for column in range(len(self.head))]
        if width is not None:
            yields = self.head.index(self.gives_way) if self.gives_way else len(self.head) - 1
            others = sum(widths) - widths[yields] + GAP * (len(widths) - 1)
            widths[yields] = min(widths[yields], max(NARROWEST, width - others))
        return widths

    def _line(self, row: TableRow, widths: Sequence[int], width: int | None) -> Text:
        line = Text()
        for name, cell, wide in zip(self.head, row.cells, widths, strict=True):
            shown = _cut(cell, wide)
            pad = " " * (wide - cell_len(shown))
            line.append(
                f"{pad}{shown}" if name in self.right else f"{shown}{pad}",
                row.style if name == self.coloured else "",
            )
            line.append(" " * GAP)
        line.rstrip()
        return line


def _cut(cell: str, width: int) -> str:
    return cell if cell_len(cell) <= width else f"{set_cell_size(cell, width - 1).rstrip()}…"


def _below(text: str, indent: int, width: int | None) -> str:
    room = 10_000_000 if width is None else max(40, width)
    pad = " " * indent
    return textwrap.fill(text, room, initial_indent=pad, subsequent_indent=pad, break_on_hyphens=False)


def _one_line(text: str) -> str:
    """A subject cannot move the cursor of a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
