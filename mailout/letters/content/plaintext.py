"""HTML → text that reads well, aloud too: the text part of every mail whose source has none of its own."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import unquote

import nh3

from mailout.letters.content.document import LINK_SCHEMES
from mailout.letters.content.model import MARK_OPEN, clean
from mailout.letters.content.variables import roughly_as_read

_BLOCKS = """address article aside blockquote center dd details div dl dt figcaption figure footer form
h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section summary table ul"""
BLOCKS = frozenset(_BLOCKS.split())
_VOID = "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr"
VOID = frozenset(_VOID.split())
MAX_TEXT_DEPTH = 100
"""What lies deeper belongs to the last element that was not too deep: only its indentation is lost."""
UNDERLINES = {"h1": "=", "h2": "-", "h3": "~", "h4": "~", "h5": "~", "h6": "~"}
SILENT = {"noscript", "script", "style", "template", "title"}
ATTRIBUTES = {"a": {"href"}, "img": {"alt"}, "ol": {"start"}, "td": {"align"}, "th": {"align"}}
TAGS = set(nh3.ALLOWED_TAGS | BLOCKS)
SCHEMES = set(LINK_SCHEMES)
_SPACES = re.compile(r"[ \t\r\n\f]+")
_MORE_SPACES = re.compile(r" {2,}")
_AROUND_BREAKS = re.compile(r" *\n *")


@dataclass(slots=True)
class Element:
    """One element of the tree; text stands among its children as it is."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element | str] = field(default_factory=list)

    def elements(self, *tags: str) -> Iterable[Element]:
        return (child for child in self.children if isinstance(child, Element) and child.tag in tags)


_TOKEN = re.compile(r'<(/?)([^\s/>]+)([^">]*(?:"[^"]*"[^">]*)*)>|([^<]+)')
_ATTRIBUTE = re.compile(r'([^\s=]+)="([^"]*)"')


def _tree(well_formed: str) -> Element:
    """Of what nh3 wrote: every quote is in its place, so it need not be looked for as in people's HTML."""
    root = Element("div")
    stack = [root]
    for end, tag, attributes, text in _TOKEN.findall(well_formed):
        if text:
            stack[-1].children.append(unescape(text) if "&" in text else text)
        elif not end:
            element = Element(tag)
            if attributes:
                element.attributes = {name: unescape(value) for name, value in _ATTRIBUTE.findall(attributes)}
            stack[-1].children.append(element)
            if tag not in VOID and len(stack) < MAX_TEXT_DEPTH:
                stack.append(element)
        else:
            for depth in range(len(stack) - 1, 0, -1):
                if stack[depth].tag == tag:
                    del stack[depth:]
                    break
    return root


def plain_text(html: str, *, titles: bool = False) -> str:
    """The text of some HTML: lists marked and counted, tables aligned, links with their addresses.

    `titles`: what shows when one points at a link or a picture is the author's own, not a template's.
    """
    # Broken HTML is put right first, as browsers would: what is left open is closed, what is silent is gone.
    well_formed = nh3.clean(
        html,
        tags=TAGS,
        clean_content_tags=SILENT,
        attributes={**ATTRIBUTES, "*": {"title"}} if titles else ATTRIBUTES,
        link_rel=None,
        url_schemes=SCHEMES,
    )
    return "\n".join(line.rstrip() for line in _block(_tree(well_formed)).strip("\n").split("\n"))


def _block(element: Element) -> str:
    """An element whose children stand one below the other, a blank line between."""
    pieces: list[str] = []
    run: list[Element | str] = []

    def end_run() -> None:
        words = _tidy("".join(_inline(child) for child in run))
        run.clear()
        if words:
            pieces.append(words)

    for child in element.children:
        if isinstance(child, Element) and (child.tag in BLOCKS or _holds_blocks(child)):
            end_run()
            text = _one(child)
            if text.strip():
                pieces.append(text)
        else:
            run.append(child)
    end_run()
    # A list belongs to the words it hangs on.
    joint = "\n" if element.tag == "li" else "\n\n"
    return joint.join(pieces)


def _holds_blocks(element: Element) -> bool:
    """A table's parts, a link around a picture and a heading: what a block is in, is one."""
    return any(
        child.tag in BLOCKS or _holds_blocks(child)
        for child in element.children
        if isinstance(child, Element)
    )


def _one(element: Element) -> str:
    """One block."""
    match element.tag:
        case "h1" | "h2" | "h3" | "h4" | "h5" | "h6":
            title = _block(element)
            longest = max((screen_width(line) for line in title.split("\n")), default=0)
            return f"{title}\n{UNDERLINES[element.tag] * min(longest, 72)}" if title else ""
        case "ul" | "ol":
            return _list(element)
        case "blockquote":
            return "\n".join(f"> {line}".rstrip() for line in _block(element).split("\n"))
        case "pre":
            return _indent(_raw(element).strip("\n").expandtabs(4), "    ", "    ")
        case "hr":
            return "* * *"
        case "table":
            return _table(element)
        case _:
            return _block(element)


def _list(element: Element) -> str:
    start = element.attributes.get("start", "1")
    number = int(start) if re.fullmatch(r"-?\d{1,9}", start) else 1
    items: list[str] = []
    for item in element.children:
        if isinstance(item, str):
            items += [words] if (words := _tidy(_inline(item))) else []
        elif item.tag not in ("li", "ul", "ol"):
            items += [words] if (words := _block(Element("div", {}, [item]))) else []
        elif item.tag == "li":
            bullet = f"{number}. " if element.tag == "ol" else "- "
            items.append(_indent(_block(item), bullet, " " * len(bullet)))
            number += 1
        else:  # a list right inside a list: an old habit of mail programs
            items.append(_indent(_list(item), "  ", "  "))
    return "\n".join(items)


def _table(element: Element) -> str:
    """Aligned when it holds data. One that holds blocks is a layout: its cells go one below the other."""
    captions = [_block(caption) for caption in element.elements("caption")]
    return "\n\n".join(text for text in (*captions, _grid(element)) if text.strip())


def _grid(element: Element) -> str:
    rows = list(_rows(element))
    cells = [list(row.elements("td", "th")) for row in rows]
    if any(_holds_blocks(cell) for row in cells for cell in row) or max(map(len, cells), default=0) < 2:
        return "\n\n".join(text for row in cells for cell in row if (text := _block(cell)).strip())
    texts = [[" ".join(_block(cell).split()) for cell in row] for row in cells]
    columns = max(map(len, texts), default=0)
    widths = [max((screen_width(row[i]) for row in texts if i < len(row)), default=0) for i in range(columns)]
    lines = []
    for elements, row in zip(cells, texts, strict=True):
        right = [cell.attributes.get("align") == "right" for cell in elements]
        padded = [_padded(text, widths[i], right[i]) for i, text in enumerate(row)]
        lines.append("  ".join(padded).rstrip())
        if len(lines) == 1 and all(cell.tag == "th" for cell in elements):
            lines.append("  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _padded(text: str, width: int, to_the_right: bool) -> str:
    room = " " * (width - screen_width(text))
    return room + text if to_the_right else text + room


def _rows(element: Element) -> Iterable[Element]:
    for child in element.elements("tr", "thead", "tbody", "tfoot"):
        if child.tag == "tr":
            yield child
        else:
            yield from _rows(child)


def _inline(node: Element | str) -> str:
    """Words within a line; `\\n` only where a person broke it."""
    if isinstance(node, str):
        return _SPACES.sub(" ", node)
    if node.tag == "br":
        return "\n"
    if node.tag == "img":
        said = (node.attributes.get("alt", ""), node.attributes.get("title", ""))
        alt = " – ".join(words for one in said if (words := " ".join(one.split())))
        return f"[{alt}]" if alt else ""  # in brackets, or it would read as a sentence of the letter
    words = "".join(_inline(child) for child in node.children)
    title = " ".join(node.attributes.get("title", "").split())
    if node.tag == "a":
        return _link(words, node.attributes.get("href", ""), title)
    if title:
        words = f"{words} ({title})"
    if node.tag in ("s", "del", "strike"):
        return struck_out(words)
    if node.tag in ("td", "th"):
        return f"{words} "
    return words


def struck_out(words: str) -> str:
    """As people type it: left out, a letter would lose words; left in, it would say the opposite."""
    inside = words.strip()
    return words.replace(inside, f"~~{inside}~~", 1) if inside else words


def _link(words: str, address: str, title: str = "") -> str:
    """The words, then where they lead, unless the words say it themselves."""
    plain = readable_address(address)
    if title:
        said = ", ".join(one for one in (title, "" if words.strip() in (address, plain) else plain) if one)
        return f"{words} ({said})" if words.strip() else said
    if not address or address.startswith("#") or words.strip() in (address, plain):
        return words
    return f"{words} ({plain})" if words.strip() else plain


def readable_address(address: str) -> str:
    """`a@example.org` for `mailto:a@example.org`; one that brings a subject stays whole, or no program would
    know what it is. A number has its spaces."""
    scheme, _, rest = address.partition(":")
    if scheme.lower() == "tel" and MARK_OPEN not in rest:  # within a mark nothing may change
        rest = " ".join(clean(unquote(rest)).split())
    return rest if scheme.lower() in ("mailto", "tel") and "?" not in rest else address


def _raw(node: Element | str) -> str:
    if isinstance(node, str):
        return node
    return "\n" if node.tag == "br" else "".join(_raw(child) for child in node.children)


def _tidy(words: str) -> str:
    """One space between words, none around line breaks. A hard space stays what it is."""
    words = _MORE_SPACES.sub(" ", words)
    return _AROUND_BREAKS.sub("\n", words).strip(" \n")


def _indent(text: str, first: str, rest: str) -> str:
    return "\n".join((rest if i else first) + line if line else "" for i, line in enumerate(text.split("\n")))


def screen_width(text: str) -> int:
    """Columns on a screen: East Asian letters and emoji take two, combining signs none. A variable counts as
    its fallback or its name: readers' own values are about as long."""
    text = roughly_as_read(text)
    return sum(
        0
        if unicodedata.combining(c) or c in "\u200d\ufe0f"
        else 2
        if unicodedata.east_asian_width(c) in "WF"
        else 1
        for c in text
    )
