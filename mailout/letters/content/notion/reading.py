"""Blocks → nodes: everything that is peculiar to Notion is understood here, once, for HTML and text alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from html import escape
from itertools import groupby
from typing import Any

from mailout.base.errors import AbortCode
from mailout.letters.content.document import Problem, cut, link_dropped
from mailout.letters.content.notion import boxes, nodes
from mailout.letters.content.notion.blocks import Block, as_mapping, walk
from mailout.letters.content.notion.equations import readable
from mailout.letters.content.notion.links import HostedFiles, safe_url, short, title_of
from mailout.letters.content.notion.nodes import Node, Nodes, Paragraph, Written
from mailout.letters.content.notion.rich_text import (
    Span,
    Spans,
    dropped_links,
    inline_html,
    plain,
    runs_of,
    spans_of,
)
from mailout.letters.content.refs import page_url
from mailout.letters.content.variables import as_written, literal_braces, marked_address
from mailout.letters.content.videos import thumbnail_of

UNSUPPORTED = "content_block_unsupported"
BUTTON_UNKNOWN = (
    "A Notion button follows. Notion's API tells neither what it says nor where it leads, so the letter has"
    " none. Write a callout with nothing but a link in it; that becomes a button."
)

SIGNS: Mapping[str, str] = {
    "video": "▶️",
    "audio": "🎧",
    "file": "📎",
    "pdf": "📄",
    "bookmark": "🔖",
    "embed": "🔗",
    "link_preview": "🔗",
    "child_page": "📄",
    "child_database": "🗂️",
    "link_to_page": "↗️",
}
"""Signs, not words: a mail may be in any language."""

_LISTS = frozenset({"bulleted_list_item", "numbered_list_item", "to_do"})
_HEADINGS: Mapping[str, int] = {f"heading_{level}": level for level in range(1, 5)}


class Reader:
    """Reads one page and remembers what it could not show and which files it needs."""

    def __init__(self, page: Sequence[Block]) -> None:
        self._page = page
        self.files = HostedFiles()
        self.problems: list[Problem] = []
        self.literals: frozenset[str] = frozenset()  # braces that are meant to be read
        self._words = ""  # the last that were read: they say where on the page something is
        self._readers: Mapping[str, Callable[[Block], Iterable[Node]]] = {
            "paragraph": self._paragraph,
            **dict.fromkeys(_HEADINGS, self._heading),
            "toggle": lambda block: (nodes.Toggle(*self._words_of(block)),),
            "quote": lambda block: (nodes.Quote(*self._words_of(block)),),
            "callout": self._callout,
            "button": self._button,
            "code": self._code,
            "equation": self._equation,
            "divider": lambda _: (Written("<hr>", ["* * *"]),),
            "image": self._image,
            **dict.fromkeys(("video", "audio", "file", "pdf"), self._file),
            **dict.fromkeys(("bookmark", "embed", "link_preview"), self._link),
            **dict.fromkeys(("child_page", "child_database", "link_to_page"), self._page_link),
            "table": self._table,
            "table_row": self._row_alone,
            "column_list": self._columns,
            **dict.fromkeys(("column", "synced_block"), lambda block: self.nodes(block.children)),
            "tab": self._tab,
            "table_of_contents": self._contents,
            "breadcrumb": lambda _: (),
            **dict.fromkeys(("meeting_notes", "transcription"), self._meeting),
        }

    def nodes(self, blocks: Iterable[Block]) -> Nodes:
        """Neighbours of one list type become one list; everything else stands for itself."""
        found: list[Node] = []
        for kind, run in groupby(blocks, key=lambda block: block.type if block.type in _LISTS else ""):
            if kind:
                found.append(self._list(kind, list(run)))
                continue
            for block in run:
                found.extend(node for node in self._one(block) if not _repeats_blank(node, found))
        return tuple(found)

    def _one(self, block: Block) -> Iterable[Node]:
        reader = self._readers.get("button" if block.name == "button" else block.type)
        if block.trouble and block.name != "button":
            self._report(block.trouble, AbortCode.MEDIA_UNAVAILABLE if block.is_lost else None)
        if reader:
            return reader(block)
        words = self._spans(block)
        if not block.trouble:
            outcome = "only its words are in the mail" if words else "it is left out"
            self._report(
                f"Notion's block “{block.name}” does not work in mail: {outcome}. Use another block."
            )
        shown: Nodes = (Paragraph(words),) if words else ()
        return shown + self.nodes(block.children)

    # ── Words ────────────────────────────────────────────────────────────────────────────────────

    def _spans(self, block: Block, key: str = "rich_text") -> Spans:
        spans = self._read(block.data.get(key))
        self._words = plain(spans) or self._words
        return spans

    def _read(self, items: object) -> Spans:
        runs = runs_of(items)
        typed = (run.get("plain_text") for run in runs)
        self.literals |= literal_braces("".join(one for one in typed if isinstance(one, str)))
        self._report_unreadable(
            str(as_mapping(run.get("equation")).get("expression") or "")
            for run in runs
            if run.get("type") == "equation"
        )
        self.problems += map(link_dropped, dropped_links(runs))
        return spans_of(items, self.files.host)

    def _words_of(self, block: Block) -> tuple[Spans, str, Nodes]:
        """What a block says, in which colour, and what hangs from it."""
        return self._spans(block), _color(block), self.nodes(block.children)

    def _paragraph(self, block: Block) -> Iterable[Node]:
        spans, color, children = self._words_of(block)
        if color != "default" and not children and not plain(spans):
            return ()  # a coloured stripe without a word
        return (Paragraph(_icon_text(block.data.get("icon")) + spans, color, children),)

    def _heading(self, block: Block) -> Iterable[Node]:
        return (nodes.Heading(*self._words_of(block), _HEADINGS[block.type]),)

    def _callout(self, block: Block) -> Iterable[Node]:
        spans = self._spans(block)
        if (url := _only_link(spans)) and not block.children:
            return (boxes.button(spans, url),)
        picture = self.files.icon(block)
        icon = (Span("•", image=picture),) if picture else _icon_text(block.data.get("icon"))
        return (nodes.Callout(spans, _color(block), self.nodes(block.children), icon),)

    def _button(self, block: Block) -> Iterable[Node]:
        """What it says and where it leads, as far as the API tells: today it tells neither."""
        spans = self._spans(block) or self._spans(block, "title")
        if url := safe_url(block.data.get("url")) or _only_link(spans):
            return (boxes.button(spans or (Span(short(url)),), url),)
        self._report(BUTTON_UNKNOWN)
        return (Paragraph(spans),) if spans else ()

    def _code(self, block: Block) -> Iterable[Node]:
        said = block.data.get("rich_text")
        self.problems += map(link_dropped, dropped_links(runs_of(said)))
        source = spans_of(said, self.files.host, literal=True)
        return (boxes.code(source, self._spans(block, "caption")),)

    def _equation(self, block: Block) -> Iterable[Node]:
        expression = str(block.data.get("expression") or "")
        self._report_unreadable([expression])
        return (boxes.equation(expression),) if expression else ()

    def _list(self, kind: str, blocks: Sequence[Block]) -> Node:
        found = []
        for block in blocks:
            if block.trouble:
                self._report(block.trouble)
            found.append(nodes.Item(*self._words_of(block), checked=block.data.get("checked") is True))
        items = tuple(found)
        if kind == "to_do":
            return nodes.ToDos(items)
        if kind == "bulleted_list_item":
            return nodes.Bullets(items)
        first = blocks[0].data
        start: Any = first.get("list_start_index")
        style = str(first.get("list_format") or "numbers")
        counted = isinstance(start, int) and not isinstance(start, bool)
        return nodes.Numbers(items, start if counted else 1, style)

    def _tab(self, block: Block) -> Iterable[Node]:
        """Its paragraphs are the labels; what is under a label hangs from it."""
        for label in block.children:
            if label.type == "paragraph":
                spans = _icon_text(label.data.get("icon")) + self._spans(label)
                yield nodes.Heading(spans, _color(label), level=4)
                yield from self.nodes(label.children)
            else:
                yield from self._one(label)

    def _meeting(self, block: Block) -> Iterable[Node]:
        title = self._spans(block, "title")
        return ((nodes.Heading(title, level=3),) if title else ()) + self.nodes(block.children)

    def _contents(self, _: Block) -> Iterable[Node]:
        return (boxes.table_of_contents(self._headings),) if self._headings else ()

    @cached_property
    def _headings(self) -> tuple[tuple[int, str], ...]:
        entries = (
            (_HEADINGS[block.type], plain(spans_of(block.data.get("rich_text"), self.files.host)))
            for block in walk(self._page)
            if block.type in _HEADINGS
        )
        return tuple((level, words) for level, words in entries if words)

    # ── Files and links ──────────────────────────────────────────────────────────────────────────

    def _image(self, block: Block) -> Iterable[Node]:
        url, name = self.files.file(block)
        caption = self._spans(block, "caption")
        alt = plain(caption) or name or "Image"
        if url is None:
            self._report("This picture has no address that a mail can load. Upload it again.")
            return (Paragraph(caption),) if caption else ()
        return (boxes.Picture(url, alt, caption),)

    def _file(self, block: Block) -> Iterable[Node]:
        url, name = self.files.file(block)
        caption = self._spans(block, "caption")
        if url is None:
            self._report(f"The {block.type} here has no address that a mail can carry. Upload it again.")
        if not (url or name or caption):
            return ()
        return (self._card(SIGNS[block.type], name, url, caption),)

    def _card(self, sign: str, name: str, url: str | None, caption: Spans) -> Node:
        """What is said twice is shown once; a video has its picture, where that is known."""
        if not _leads_on(caption, url) and (not name or plain(caption) == name):
            name, caption = plain(caption), ()
        card = boxes.card(sign, name, url, caption)
        ref = self.files.video(url, card.html()) if url else None
        if not (url and ref):
            return card
        said = [escape(name), inline_html(caption)]
        return boxes.Video(card, url, ref, "<br>".join(filter(None, said)))

    def _link(self, block: Block) -> Iterable[Node]:
        written = str(block.data.get("url") or "").strip()
        plain_url, caption = safe_url(written), self._spans(block, "caption")
        url = marked_address(plain_url) if plain_url else None
        if not (written or caption):
            return ()
        if url is None:
            self._report(
                f"The address “{written}” cannot stand in a mail. Give one that begins with https://."
            )
        if url and block.type == "embed" and thumbnail_of(url):  # its address is an id, not words
            return (self._card(SIGNS["video"], "", url, caption),)
        said = title_of(plain_url) if plain_url else written
        if _leads_on(caption, url):
            return (boxes.card(SIGNS[block.type], said, url, caption),)
        return (boxes.card(SIGNS[block.type], plain(caption) or said, url),)

    def _page_link(self, block: Block) -> Iterable[Node]:
        kind = str(block.data.get("type") or "")
        url = page_url(block.data.get(kind) if block.type == "link_to_page" else block.id)
        name = str(block.data.get("title") or "")
        return (boxes.card(SIGNS[block.type], name, url),) if name or url else ()

    # ── Tables and columns ───────────────────────────────────────────────────────────────────────

    def _table(self, block: Block) -> Iterable[Node]:
        rows = [self._cells(row) for row in block.children if row.type == "table_row"]
        others = self.nodes(row for row in block.children if row.type != "table_row")
        width = max((len(row) for row in rows), default=0)
        spans = (span for row in rows for cell in row for span in cell)
        if not any(span.text.strip() or span.image for span in spans):
            return others
        table = boxes.table(
            [row + ((),) * (width - len(row)) for row in rows],
            header_row=block.data.get("has_column_header") is True,
            header_column=block.data.get("has_row_header") is True,
        )
        return (table, *others)

    def _cells(self, row: Block) -> tuple[Spans, ...]:
        cells = row.data.get("cells")
        if not isinstance(cells, Sequence) or isinstance(cells, str):
            return ()
        return tuple(self._read(cell) for cell in cells)

    def _row_alone(self, block: Block) -> Iterable[Node]:
        cells = self._cells(block)
        return (boxes.table((cells,)),) if cells else ()

    def _columns(self, block: Block) -> Iterable[Node]:
        columns = [(_ratio(column), self.nodes([column])) for column in block.children]
        columns = [(ratio, children) for ratio, children in columns if children]
        given = [ratio for ratio, _ in columns if ratio]
        usual = sum(given) / len(given) if given else 1.0
        total = sum(ratio or usual for ratio, _ in columns)
        if not columns:
            return ()
        return (boxes.Columns(tuple(((ratio or usual) / total, children) for ratio, children in columns)),)

    def _report_unreadable(self, expressions: Iterable[str]) -> None:
        for expression in expressions:
            if expression.strip() and not readable(expression):
                message = "This equation is shown as its source: letters cannot write it. Say it in words."
                self.problems.append(Problem("equation_as_source", message, expression))

    def _report(self, message: str, stops: AbortCode | None = None) -> None:
        """By the nearest words before it: nobody finds a block by its id."""
        where = cut(as_written(self._words), 60) or "the top of the page"
        self.problems.append(Problem(UNSUPPORTED, message, where, stops))


def _repeats_blank(node: Node, before: Sequence[Node]) -> bool:
    """Several empty paragraphs are one empty line."""
    blank = isinstance(node, Paragraph) and node.is_blank
    last = before[-1] if before else None
    return blank and isinstance(last, Paragraph) and last.is_blank


def _only_link(spans: Spans) -> str | None:
    """Where the words lead, if all of them lead to one place."""
    addresses = {span.href for span in spans if span.text.strip()}
    return addresses.pop() if len(addresses) == 1 else None


def _leads_on(caption: Spans, url: str | None) -> bool:
    """Whether it has a link of its own, which it would lose as the words of the block's link."""
    return any(span.href and span.href != url for span in caption)


def _color(block: Block) -> str:
    return str(block.data.get("color") or "default")


def _ratio(column: Block) -> float | None:
    ratio: Any = column.data.get("width_ratio")
    usable = isinstance(ratio, int | float) and not isinstance(ratio, bool) and 0 < ratio <= 1
    return float(ratio) if usable else None


def _icon_text(icon: object) -> Spans:
    """An emoji in front of the words; pictures are left to callouts."""
    if not isinstance(icon, Mapping) or not isinstance(icon.get("emoji"), str):
        return ()
    return (Span(f"{icon['emoji']} "),)
