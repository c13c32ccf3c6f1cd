"""One style for every table: a bold head, colour for what matters, as wide as the terminal and no wider.

Elsewhere (a file, grep) nothing is cut: a line is a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from cli.output import out, wrapped
from mailout.insight.reporting.plain import printable

GAP = 2
NARROWEST = 12
"""What remains for the column that gives way, however narrow the terminal."""


@dataclass(frozen=True)
class TextTable:
    """`gives_way`: the column that is cut in a narrow terminal; `coloured`: the one with a style."""

    head: Sequence[str]
    right: frozenset[str] = frozenset()
    gives_way: str = ""
    coloured: str = ""
    indent: int = 2
    _rows: list[tuple[Sequence[str], str, str]] = field(default_factory=list, init=False)

    def add(self, *cells: str, style: str = "", more: str = "") -> None:
        """`more`: a sentence below the row, as long as it needs to be."""
        self._rows.append(([printable(cell) for cell in cells], style, printable(more)))

    def show(self) -> None:
        width = out.width if out.is_terminal else None
        widths = self._widths(width)
        out.print(self._line(self.head, "", widths), style="bold")
        for cells, style, more in self._rows:
            out.print(self._line(cells, style, widths))
            if more:
                pad = " " * self.indent
                out.print(wrapped(more, width, pad, pad), style="dim")

    def _widths(self, width: int | None) -> list[int]:
        lines = (self.head, *(cells for cells, _, _ in self._rows))
        widths = [max(cell_len(line[column]) for line in lines) for column in range(len(self.head))]
        if width is not None:
            yields = self.head.index(self.gives_way) if self.gives_way else len(self.head) - 1
            others = sum(widths) - widths[yields] + GAP * (len(widths) - 1)
            widths[yields] = min(widths[yields], max(NARROWEST, width - others))
        return widths

    def _line(self, cells: Sequence[str], style: str, widths: Sequence[int]) -> Text:
        line = Text()
        for name, cell, wide in zip(self.head, cells, widths, strict=True):
            shown = _cut(cell, wide)
            pad = " " * (wide - cell_len(shown))
            line.append(
                f"{pad}{shown}" if name in self.right else f"{shown}{pad}",
                style if name == self.coloured else "",
            )
            line.append(" " * GAP)
        line.rstrip()
        return line


def _cut(cell: str, width: int) -> str:
    return cell if cell_len(cell) <= width else f"{set_cell_size(cell, width - 1).rstrip()}…"
