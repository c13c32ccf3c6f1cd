"""Blocks that are more than words: pictures, files and links, buttons, code, tables, columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from mailout.letters.content.brand import BUTTON
from mailout.letters.content.document import CAPTIONED
from mailout.letters.content.model import MARK_OPEN
from mailout.letters.content.notion.equations import readable
from mailout.letters.content.notion.links import short, site_of
from mailout.letters.content.notion.nodes import (
    BOX,
    WIDTH,
    Node,
    NodePlace,
    Nodes,
    Written,
    hang,
    lines_of,
    nodes_html,
    stacked,
    words_of,
)
from mailout.letters.content.notion.rich_text import Spans, inline_html, inline_text, plain, with_address
from mailout.letters.content.plaintext import screen_width
from mailout.letters.content.videos import figure

# ── Written once ─────────────────────────────────────────────────────────────────────────────────


def button(spans: Spans, url: str) -> Node:
    """A link that stands alone in a callout."""
    words = inline_html(tuple(replace(span, href=None, color="default") for span in spans)).strip()
    html = BUTTON.format(address=escape(url), words=words)
    return Written(html, [f"→ {with_address(plain(spans), url)}"])


def code(spans: Spans, caption: Spans) -> Node:
    # <code> first: a line break straight after <pre> would be lost.
    html = f"<pre><code>{inline_html(spans, verbatim=True)}</code></pre>{_caption_html(caption)}"
    source = "".join(span.text for span in spans).rstrip("\n").split("\n")
    return Written(html, stacked(hang(source, "    ", "    "), words_of(caption)))


def equation(expression: str) -> Node:
    said = readable(expression)
    words = f"<em>{escape(said)}</em>" if said else f"<code>{escape(expression)}</code>"
    lines = hang((said or expression).split("\n"), "    ", "    ")
    return Written(f'<p class="n-equation">{words}</p>', lines)


def table_of_contents(entries: Sequence[tuple[int, str]]) -> Node:
    """Of the page's headings: (level, words)."""
    top = min(level for level, _ in entries)
    html = "<br>".join(f"{'&#160;' * 4 * (level - top)}{escape(words)}" for level, words in entries)
    return Written(
        f'<p class="n-toc">{html}</p>', [f"{'  ' * (level - top)}- {words}" for level, words in entries]
    )


def card(sign: str, name: str, url: str | None, caption: Spans = ()) -> Written:
    """What a mail cannot play or embed: a sign of what it is, its name (if it has one), its address."""
    where = short(url) if url and not url.startswith(MARK_OPEN) else ""  # a mark is no address yet
    shown = escape(name or where)
    html = [f'{sign}&#160;<a href="{escape(url)}">{shown}</a>' if url else f"{sign}&#160;{shown}"]
    if url and name and where != name and (site := site_of(url)):
        html.append(f'<span class="n-where">{escape(site)}</span>')
    if caption:
        html.append(f'<span class="n-where">{inline_html(caption)}</span>')
    box = f'{BOX} width="100%" class="n-card"><tr><td class="n-card-in">'
    lines = [f"{sign} {with_address(name, url)}", *(f"   {line}" for line in words_of(caption))]
    return Written(f"{box}{'<br>'.join(html)}</td></tr></table>", lines)


def table(rows: Sequence[Sequence[Spans]], *, header_row: bool = False, header_column: bool = False) -> Node:
    """`rows`: all of one length."""
    written = []
    for number, row in enumerate(rows):
        cells = []
        for column, spans in enumerate(row):
            scope = "col" if header_row and number == 0 else ""
            scope = scope or ("row" if header_column and column == 0 else "")
            words = inline_html(spans) or "&#160;"
            cells.append(f'<th scope="{scope}" align="left">{words}</th>' if scope else f"<td>{words}</td>")
        written.append(f"<tr>{''.join(cells)}</tr>\n")
    html = f'<table cellpadding="0" cellspacing="0" border="0" width="100%">\n{"".join(written)}</table>'
    return Written(html, _table_lines(rows, header_row))


def _table_lines(rows: Sequence[Sequence[Spans]], header_row: bool) -> list[str]:
    """Aligned; where it is too wide for that row by row, each cell after its column's name. A column without
    cells is named once, above them."""
    said = [[" ".join(inline_text(cell).split()) for cell in row] for row in rows]
    widths = [max(screen_width(cell) for cell in column) for column in zip(*said, strict=True)]
    lines: list[str] = []
    if sum(widths) + 3 * (len(widths) - 1) > WIDTH:
        names, body = (said[0], said[1:]) if header_row else ([""] * len(widths), said)
        if header_row:
            lines = [name for name, *cells in zip(*said, strict=True) if name and not any(cells)]
        for row in body:
            named = zip(names, row, strict=True)
            lines = stacked(lines, [f"{name}: {cell}" if name else cell for name, cell in named if cell])
        return lines
    for row in said:
        padded = (cell + " " * (width - screen_width(cell)) for cell, width in zip(row, widths, strict=True))
        lines.append(" | ".join(padded).rstrip())
    if header_row:
        lines.insert(1, "-+-".join("-" * width for width in widths))
    return lines


def _caption_html(spans: Spans) -> str:
    return f'<p class="caption">{inline_html(spans)}</p>' if spans else ""


# ── As wide as their place ───────────────────────────────────────────────────────────────────────


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
        return f'<div class="figure"><img class="{name}" {source}>{_caption_html(self.caption)}</div>'

    def lines(self) -> list[str]:
        lines = [f"[{self.alt}] {self.url}"]
        caption = inline_text(self.caption)
        return lines if not caption or caption == self.alt else [*lines, caption]


@dataclass(frozen=True, slots=True)
class Video:
    """The picture of a video, and in text the card that it has without one."""

    card: Written
    url: str
    ref: str
    caption: str  # HTML

    def html(self, place: NodePlace) -> str:
        return figure(self.url, self.ref, self.caption, place.width)

    def lines(self) -> list[str]:
        return self.card.lines()


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
