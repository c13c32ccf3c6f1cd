"""Nodes → HTML that mail clients show: tables for columns and boxes, lists as lists, no flex, no grid.

The layout styles what HTML has an element for; classes are for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from mailout.content.brand import BUTTON
from mailout.content.media import COLUMN
from mailout.content.notion.equations import readable
from mailout.content.notion.links import short
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
from mailout.content.notion.rich_text import Spans, inline_html, plain
from mailout.content.notion.styles import color_class

BOX = '<table role="presentation" cellpadding="0" cellspacing="0" border="0"'
DEEP = 5
"""From this depth on lists are indented less, so that words keep some room on a phone."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the page a node stands."""

    width: int = COLUMN
    depth: int = 0  # how many times it is indented

    def deeper(self, by: int = 26) -> Place:
        return Place(self.width - by, self.depth + 1)


def nodes_html(nodes: Nodes, place: Place | None = None) -> str:
    place = place or Place()
    return "\n".join(_WRITERS[type(node)](node, place) for node in nodes)


def _paragraph(node: Paragraph, place: Place) -> str:
    words = inline_html(node.spans) or "&#160;"
    return f"<p{_class('', node.color, filled=True)}>{words}</p>{_indented(node.children, place)}"


def _heading(node: Heading, place: Place) -> str:
    tag = f"h{node.level}"
    heading = f"<{tag}{_class('', node.color, filled=True)}>{inline_html(node.spans)}</{tag}>"
    return (heading if node.spans else "") + _indented(node.children, place)


def _bullets(node: Bullets, place: Place) -> str:
    return f"<ul{_list_class(place)}>\n{_items(node.items, place)}\n</ul>"


def _numbers(node: Numbers, place: Place) -> str:
    start = f' start="{node.start}"' if node.start != 1 else ""
    style = {"letters": ' type="a"', "roman": ' type="i"'}.get(node.style, "")
    return f"<ol{_list_class(place)}{start}{style}>\n{_items(node.items, place)}\n</ol>"


def _items(items: tuple[Item, ...], place: Place) -> str:
    inside = place.deeper()
    return "\n".join(
        f"<li{_class('', item.color)}>{_with_children(inline_html(item.spans), item.children, inside)}</li>"
        for item in items
    )


def _todos(node: ToDos, place: Place) -> str:
    return f'{BOX} class="n-todos">\n' + "\n".join(_todo(item, place) for item in node.items) + "\n</table>"


def _todo(item: Item, place: Place) -> str:
    words = inline_html(item.spans)
    if item.checked:
        words = f'<span class="n-done">{words}</span>'
    body = _with_children(words, item.children, place.deeper())
    return (
        f'<tr><td class="n-box" valign="top">{"☑" if item.checked else "☐"}</td>'
        f'<td{_class("n-todo", item.color)} valign="top">{body}</td></tr>'
    )


def _toggle(node: Toggle, place: Place) -> str:
    head = f"<p{_class('', node.color, filled=True)}>▾ {inline_html(node.spans)}</p>"
    return head + _indented(node.children, place)


def _quote(node: Quote, place: Place) -> str:
    body = _said(node.spans, node.children, place.deeper(19))
    return f"<blockquote{_class('', node.color, filled=True)}>{body}</blockquote>"


def _callout(node: Callout, place: Place) -> str:
    icon = (
        f'<td class="n-icon" valign="top" width="24">{inline_html(node.icon).strip()}</td>'
        if node.icon
        else ""
    )
    body = _said(node.spans, node.children, place.deeper(72))
    box = f'{BOX} width="100%"{_class("n-callout", node.color)}>'
    return f'{box}<tr>{icon}<td class="n-said" valign="top">{body}</td></tr></table>'


def _button(node: Button, _: Place) -> str:
    words = inline_html(tuple(replace(span, href=None, color="default") for span in node.spans)).strip()
    return BUTTON.format(address=escape(node.url), words=words)


def _code(node: Code, _: Place) -> str:
    # <code> first: a line break straight after <pre> would be lost.
    source = f"<pre><code>{inline_html(node.spans, verbatim=True)}</code></pre>"
    return source + _caption(node.caption)


def _equation(node: Equation, _: Place) -> str:
    said = readable(node.expression)
    words = f"<em>{escape(said)}</em>" if said else f"<code>{escape(node.expression)}</code>"
    return f'<p class="n-equation">{words}</p>'


def _rule(_: Rule, __: Place) -> str:
    return "<hr>"


def _picture(node: Picture, place: Place) -> str:
    # Outlook goes by the attribute; the others by the stylesheet's `auto`, so small pictures stay small.
    source = f'src="{escape(node.url)}" alt="{escape(node.alt)}" width="{max(place.width, 40)}"'
    return f'<div class="n-figure"><img class="n-image" {source}>{_caption(node.caption)}</div>'


def _card(node: Card, _: Place) -> str:
    where = short(node.url) if node.url and node.url.startswith("http") else ""
    name = escape(node.name or where)
    if node.url:
        name = f'<a href="{escape(node.url)}">{name}</a>'
    lines = [f"{node.sign}&#160;{name}"]
    if where and node.name and where != node.name:
        lines.append(f'<span class="n-where">{escape(where)}</span>')
    if node.caption and plain(node.caption) != node.name:
        lines.append(f'<span class="n-where">{inline_html(node.caption)}</span>')
    box = f'{BOX} width="100%" class="n-card"><tr><td class="n-card-in">'
    return f"{box}{'<br>'.join(lines)}</td></tr></table>"


def _table(node: Table, _: Place) -> str:
    rows = []
    for number, row in enumerate(node.rows):
        cells = []
        for column, spans in enumerate(row):
            scope = "col" if node.header_row and number == 0 else ""
            scope = scope or ("row" if node.header_column and column == 0 else "")
            words = inline_html(spans) or "&#160;"
            if scope:
                cells.append(f'<th scope="{scope}" align="left">{words}</th>')
            else:
                cells.append(f"<td>{words}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    # The box has a fixed layout: a wide table scrolls in it instead of widening the whole mail.
    opening = (
        f'{BOX} width="100%" class="n-wide"><tr><td><div class="n-scroll">'
        '<table cellpadding="0" cellspacing="0" border="0" width="100%">'
    )
    return f"{opening}\n" + "\n".join(rows) + "\n</table></div></td></tr></table>"


def _columns(node: Columns, place: Place) -> str:
    cells = []
    for number, column in enumerate(node.columns, start=1):
        last = " n-last" if number == len(node.columns) else ""
        width = int(place.width * column.share) - (0 if last else 14)
        body = nodes_html(column.children, Place(width, place.depth))
        cells.append(
            f'<td class="n-column{last}" width="{round(column.share * 100)}%" valign="top">\n{body}\n</td>'
        )
    return f'{BOX} width="100%" class="n-columns"><tr>\n' + "\n".join(cells) + "\n</tr></table>"


def _contents(node: Contents, _: Place) -> str:
    top = min(level for level, _ in node.entries)
    lines = (f"{'&#160;' * 4 * (level - top)}{escape(words)}" for level, words in node.entries)
    return f'<p class="n-toc">{"<br>".join(lines)}</p>'


def _with_children(words: str, children: Nodes, place: Place) -> str:
    return "\n".join(part for part in (words, nodes_html(children, place)) if part)


def _indented(children: Nodes, place: Place) -> str:
    if not children:
        return ""
    margin = ' class="n-indent"' if place.depth < DEEP else ""
    return f"\n<div{margin}>\n{nodes_html(children, place.deeper(22))}\n</div>"


def _said(spans: Spans, children: Nodes, place: Place) -> str:
    """The words of a box; a paragraph of their own once something follows them."""
    words = inline_html(spans)
    if words and children:
        words = f"<p>{words}</p>"
    return _with_children(words, children, place)


def _caption(spans: Spans) -> str:
    return f'<p class="n-caption">{inline_html(spans)}</p>' if spans else ""


def _class(name: str, color: str, *, filled: bool = False) -> str:
    """`filled`: a background of its own needs some room around the words."""
    colored = color_class(color) or ""
    room = "n-filled" if filled and colored.startswith("n-bg-") else ""
    names = " ".join(one for one in (name, colored, room) if one)
    return f' class="{names}"' if names else ""


def _list_class(place: Place) -> str:
    return ' class="n-deep"' if place.depth >= DEEP else ""


_WRITERS: Mapping[type, Callable[[Any, Place], str]] = {
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
