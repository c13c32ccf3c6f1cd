"""Nodes that are more than words: pictures, files and links, tables, columns, a line across."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from mailout.letters.content.document import CAPTIONED
from mailout.letters.content.notion.links import short, site_of
from mailout.letters.content.notion.nodes import (
    BOX,
    WIDTH,
    NodePlace,
    Nodes,
    caption_html,
    lines_of,
    nodes_html,
    stacked,
    words_of,
)
from mailout.letters.content.notion.rich_text import Spans, inline_html, inline_text, plain, with_address
from mailout.letters.content.plaintext import screen_width
from mailout.letters.content.videos import figure


class Rule:
    """A line across."""

    def html(self, _: NodePlace) -> str:
        return "<hr>"

    def lines(self) -> list[str]:
        return ["* * *"]


@dataclass(frozen=True, slots=True)
class Picture:
    url: str
    alt: str
    caption: Spans = ()

    def html(self, place: NodePlace) -> str:
        # Outlook goes by the attribute; the others by the stylesheet's `auto`, so small pictures stay small.
        # Its caption is its description: said once, below it.
        is_said = bool(self.caption) and plain(self.caption) == self.alt
        alt, name = ("", f"n-image {CAPTIONED}") if is_said else (escape(self.alt), "n-image")
        source = f'src="{escape(self.url)}" alt="{alt}" width="{max(place.width, 40)}"'
        return f'<div class="figure"><img class="{name}" {source}>{caption_html(self.caption)}</div>'

    def lines(self) -> list[str]:
        lines = [f"[{self.alt}] {self.url}"]
        caption = inline_text(self.caption)
        return lines if not caption or caption == self.alt else [*lines, caption]


@dataclass(frozen=True, slots=True)
class Card:
    """What a mail cannot play or embed: a sign of what it is, its name (if it has one), its address."""

    sign: str
    name: str
    url: str | None
    caption: Spans = ()

    def html(self, _: NodePlace) -> str:
        where = short(self.url) if self.url and self.url.startswith("http") else ""
        name = escape(self.name or where)
        if self.url:
            name = f'<a href="{escape(self.url)}">{name}</a>'
        lines = [f"{self.sign}&#160;{name}"]
        if where and self.name and where != self.name:
            lines.append(f'<span class="n-where">{escape(site_of(self.url or ""))}</span>')
        if self.says_more:
            lines.append(f'<span class="n-where">{inline_html(self.caption)}</span>')
        box = f'{BOX} width="100%" class="n-card"><tr><td class="n-card-in">'
        return f"{box}{'<br>'.join(lines)}</td></tr></table>"

    def lines(self) -> list[str]:
        caption = words_of(self.caption) if self.says_more else []
        return [f"{self.sign} {with_address(self.name, self.url)}", *(f"   {line}" for line in caption)]

    @property
    def says_more(self) -> bool:
        return bool(self.caption) and plain(self.caption) != self.name


@dataclass(frozen=True, slots=True)
class Video:
    """The picture of a video, and in text the card that it has without one."""

    card: Card
    url: str
    ref: str

    def html(self, place: NodePlace) -> str:
        said = [escape(self.card.name), inline_html(self.card.caption) if self.card.says_more else ""]
        return figure(self.url, self.ref, "<br>".join(filter(None, said)), place.width)

    def lines(self) -> list[str]:
        return self.card.lines()


@dataclass(frozen=True, slots=True)
class TableNode:
    rows: tuple[tuple[Spans, ...], ...]  # all of one length
    header_row: bool = False
    header_column: bool = False

    def html(self, _: NodePlace) -> str:
        rows = []
        for number, row in enumerate(self.rows):
            cells = []
            for column, spans in enumerate(row):
                scope = "col" if self.header_row and number == 0 else ""
                scope = scope or ("row" if self.header_column and column == 0 else "")
                words = inline_html(spans) or "&#160;"
                if scope:
                    cells.append(f'<th scope="{scope}" align="left">{words}</th>')
                else:
                    cells.append(f"<td>{words}</td>")
            rows.append(f"<tr>{''.join(cells)}</tr>")
        opening = '<table cellpadding="0" cellspacing="0" border="0" width="100%">'
        return f"{opening}\n" + "\n".join(rows) + "\n</table>"

    def lines(self) -> list[str]:
        """Aligned, or row by row where it is too wide for that."""
        rows = [[" ".join(inline_text(cell).split()) for cell in row] for row in self.rows]
        widths = [max(screen_width(cell) for cell in column) for column in zip(*rows, strict=True)]
        if sum(widths) + 3 * (len(widths) - 1) > WIDTH:
            return self._row_by_row(rows)
        lines = [
            " | ".join(
                cell + " " * (width - screen_width(cell)) for cell, width in zip(row, widths, strict=True)
            ).rstrip()
            for row in rows
        ]
        if self.header_row:
            lines.insert(1, "-+-".join("-" * width for width in widths))
        return lines

    def _row_by_row(self, rows: Sequence[Sequence[str]]) -> list[str]:
        """Each cell after its column's name."""
        names, body = (rows[0], rows[1:]) if self.header_row else ([""] * len(rows[0]), rows)
        lines: list[str] = []
        for row in body or [rows[0]]:
            cells = [
                f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=True) if cell
            ]
            lines = stacked(lines, cells)
        return lines


@dataclass(frozen=True, slots=True)
class Columns:
    columns: tuple[tuple[float, Nodes], ...]  # (share of the width, what is in it); the shares add up to 1

    def html(self, place: NodePlace) -> str:
        cells = []
        for number, (share, children) in enumerate(self.columns, start=1):
            last = " n-last" if number == len(self.columns) else ""
            width = int(place.width * share) - (0 if last else 14)
            body = nodes_html(children, NodePlace(width, place.depth))
            cells.append(
                f'<td class="n-column{last}" width="{round(share * 100)}%" valign="top">\n{body}\n</td>'
            )
        return f'{BOX} width="100%" class="n-columns"><tr>\n' + "\n".join(cells) + "\n</tr></table>"

    def lines(self) -> list[str]:
        """One after another: text has one column."""
        return lines_of(tuple(node for _, children in self.columns for node in children))
