"""A Markdown file → a document: e-mail-safe HTML, and text made from that HTML. No word of it is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import unescape
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import nh3
from linkify_it import LinkifyIt  # type: ignore[import-untyped]
from linkify_it.main import Match  # type: ignore[import-untyped]
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block.table import escapedSplit
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.footnote import footnote_plugin

from mailout.letters.content import raw_html
from mailout.letters.content.brand import BUTTON
from mailout.letters.content.document import (
    CAPTIONED,
    LINK_SCHEMES,
    WEB_SCHEMES,
    Document,
    Media,
    Problem,
    cut,
    link_dropped,
)
from mailout.letters.content.front_matter import LetterOptions, front_matter, split
from mailout.letters.content.media import media_ref
from mailout.letters.content.model import clean
from mailout.letters.content.plaintext import plain_text
from mailout.letters.content.variables import HiddenVariables, literal_braces

BUTTON_QUOTE = re.compile(
    r'<blockquote>\s*<p><a href="([^"]*)"(?: title="[^"]*")?>((?:(?!</?a\b|<br|<img).)*)</a></p>'
    r"\s*</blockquote>"
)
"""A link that is all of a quote: nobody quotes that, so it is a button."""
ALIGNED = re.compile(r"text-align:(left|right|center)")
PICTURE_ALONE = re.compile(r'<p>(<a href="[^"]*">)?<img((?: [a-z]+="[^"]*")*)>(?:</a>)?</p>')
TASK = re.compile(r"\[([ xX])\][ \t]+(?=\S)")
CODE_LANGUAGE = re.compile(r"[\w+#.-]+")
"""What may follow the three backticks without a finding."""

SHOWN_ADDRESS_CHARS = 100
"""Of a picture, in a finding: the address may hold the whole picture."""
BEFORE_ROW = re.compile(r"^[>\s]*(?:(?:[*+-]|\d+[.)])\s+)*[>\s]*")
"""Of quotes and lists that a table stands in."""


@dataclass(frozen=True, slots=True)
class MarkdownMailout:
    """A whole file: how to send it, and what to send."""

    options: LetterOptions
    document: Document


def parse_markdown(written: str, name: str) -> MarkdownMailout:
    """`name` is the file's, for error messages. Pictures beside the file become the document's media."""
    front, body = split(clean(written).removeprefix("\ufeff"), name)
    options = front_matter(front, name)
    hidden = HiddenVariables()
    sieve = _Sanitizer(hidden)
    rendered, problems = _rendered(hidden.hide(body))
    html = _figures(hidden.show(sieve.clean(rendered).strip()))
    text = plain_text(BUTTON_QUOTE.sub(r'<p>→ <a href="\1">\2</a></p>', html), titles=True)
    html = BUTTON_QUOTE.sub(lambda found: BUTTON.format(address=found[1], words=found[2]), html)
    problems = [replace(one, where=hidden.as_written(one.where or "")) for one in problems + sieve.problems]
    return MarkdownMailout(
        options, options.document(html, text, problems, sieve.media.values(), literal_braces(body))
    )


# ── From Markdown to HTML ────────────────────────────────────────────────────────────────────────


class _Renderer(RendererHTML):
    """markdown-it's own, with cells aligned by an attribute: `style` does not pass the sieve."""

    def _aligned(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        aligned = ALIGNED.search(str(tokens[idx].attrs.pop("style", "")))
        if aligned:
            tokens[idx].attrs["align"] = aligned[1]
        return self.renderToken(tokens, idx, options, env)

    th_open = td_open = _aligned


class _BareAddresses(LinkifyIt):  # type: ignore[misc]
    """What GFM takes for a link without being told. A file's name (`README.md`) looks like one, too."""

    def match(self, text: str) -> list[Match] | None:
        return [found for found in super().match(text) or () if self._is_meant(found)] or None

    def _is_meant(self, found: Match) -> bool:
        if found.text.lower().startswith("www."):
            found.url = f"https://{found.text}"
            return True
        return found.schema in ("http:", "https:", "mailto:")


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"linkify": True}, renderer_cls=_Renderer)
    parser.enable(["table", "strikethrough", "linkify"]).use(deflist_plugin)
    parser.use(footnote_plugin, inline=False, move_to_end=False)
    parser.core.ruler.after("inline", "notes", _notes_last)
    parser.linkify = _BareAddresses()
    # Every address reaches the sieve, which keeps the words where it drops the link.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    # Numbers, not links: mail programs do not jump within a mail.
    for name, html in {
        "footnote_block_open": '<hr>\n<ol class="notes">\n',
        "footnote_block_close": "</ol>\n",
        "footnote_open": "<li>",
        "footnote_close": "</li>\n",
    }.items():
        parser.add_render_rule(name, lambda *_, html=html: html)
    parser.add_render_rule("footnote_ref", _note_number)
    return parser


def _notes_last(state: StateCore) -> None:
    """In the order in which the letter points to them; then those that it does not point to."""
    numbers: dict[str, int] = state.env.get("footnotes", {}).get("refs", {})
    notes: dict[str, list[Token]] = {}
    open_notes: list[list[Token]] = []
    letter: list[Token] = []
    for token in state.tokens:
        if token.type == "footnote_reference_open":
            open_notes.append(notes.setdefault(token.meta["label"], []))
        elif token.type == "footnote_reference_close":
            open_notes.pop()
        else:
            (open_notes[-1] if open_notes else letter).append(token)
    if notes:
        letter.append(Token("footnote_block_open", "", 1))
        for label in sorted(notes, key=lambda label: numbers[f":{label}"] % (len(numbers) + 1)):
            letter += [Token("footnote_open", "", 1), *notes[label], Token("footnote_close", "", -1)]
        letter.append(Token("footnote_block_close", "", -1))
    state.tokens = letter


def _note_number(_: object, tokens: Sequence[Token], idx: int, *__: object) -> str:
    return f"<sup>[{int(tokens[idx].meta['id']) + 1}]</sup>"


def _rendered(body: str) -> tuple[str, list[Problem]]:
    """The HTML, and the words of the source that are not in it."""
    parser = _parser()
    env: dict[str, Any] = {}
    tokens = parser.parse(body, env)
    problems = [*raw_html.settle(tokens), *_unused(tokens, env), *_cells_too_many(tokens, body)]
    problems += [
        Problem("link_dropped", "A picture's description holds no links; its words stay.", unquote(inner))
        for token in tokens
        for one in _with_children(token)
        for within in (_with_children(one) if one.type == "image" else ())
        if within is not one and (inner := str(within.attrs.get("href") or within.attrs.get("src") or ""))
    ]
    problems += [
        Problem("code_words", "Only code stands in code: these words beside its ``` are not shown.", info)
        for token in tokens
        if token.type == "fence" and (info := token.info.strip()) and not CODE_LANGUAGE.fullmatch(info)
    ]
    _tick(tokens)
    return str(parser.renderer.render(tokens, parser.options, env)), problems


def _tick(tokens: Sequence[Token]) -> None:
    """Task lists: no mail program has check boxes that mean anything."""
    for item, paragraph, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if (item.type, paragraph.type, inline.type) != ("list_item_open", "paragraph_open", "inline"):
            continue
        first = inline.children[0] if inline.children else None
        found = TASK.match(inline.content)
        if first is not None and first.type == "text" and found and first.content.startswith(found[0]):
            first.content = ("☐ " if found[1] == " " else "☑ ") + first.content[found.end() :]


def _unused(tokens: Sequence[Token], env: EnvType) -> Iterator[Problem]:
    """Definitions of links and notes that nothing points to, or a second of one name."""
    pointed_to = {
        str(token.attrs.get(name))
        for one in tokens
        for token in _with_children(one)
        for name in ("href", "src")
        if name in token.attrs
    }
    references: dict[str, Any] = env.get("references", {})
    unused = [{**one, "label": label} for label, one in references.items() if one["href"] not in pointed_to]
    for one in (*unused, *env.get("duplicate_refs", ())):
        where = " ".join(filter(None, (f"[{one['label']}]:", unquote(one["href"]), one["title"])))
        yield Problem("link_unused", "Nothing in the letter uses this link.", where)
    numbers: dict[str, int] = env.get("footnotes", {}).get("refs", {})
    for label in (label for label, number in numbers.items() if number < 0):
        yield Problem("note_unused", "Nothing in the letter points to this note.", f"[^{label[1:]}]")


def _with_children(token: Token) -> Iterator[Token]:
    yield token
    for child in token.children or ():
        yield from _with_children(child)


def _cells_too_many(tokens: Sequence[Token], body: str) -> Iterator[Problem]:
    """Markdown drops the cells that a row has beyond its table's columns."""
    lines = re.split(r"\r\n|\r|\n", body)
    columns = 0
    for token in tokens:
        if token.type == "table_open":
            columns = 0
        elif token.type == "th_open":
            columns += 1
        elif token.type == "tr_open" and columns and token.map:
            cells = escapedSplit(BEFORE_ROW.sub("", lines[token.map[0]]).strip())
            beyond = cells[columns:] if cells[0] else cells[columns + 1 :]
            if lost := " | ".join(cell.strip() for cell in beyond if cell.strip()):
                yield Problem("cells_dropped", "This table row has more cells than the table columns.", lost)


# ── From HTML to what mail may carry ─────────────────────────────────────────────────────────────


def _figures(html: str) -> str:
    """A picture that stands alone has its title below it. What the caption says, `alt` need not say again."""

    def figure(found: re.Match[str]) -> str:
        link, attributes = found[1] or "", dict(re.findall(r' ([a-z]+)="([^"]*)"', found[2]))
        caption = attributes.pop("title", "")
        if not caption:
            return found[0]
        if attributes.get("alt", "").strip() == caption.strip():
            attributes |= {"alt": "", "class": CAPTIONED}
        given = "".join(f' {name}="{value}"' for name, value in attributes.items())
        picture = f"{link}<img{given}>{'</a>' if link else ''}"
        return f'<div class="figure">{picture}<p class="caption">{caption}</p></div>'

    return PICTURE_ALONE.sub(figure, html)


class _Sanitizer:
    """Lets through what mail may carry (raw HTML comes here too), and notes pictures and dropped links."""

    def __init__(self, hidden: HiddenVariables) -> None:
        self._hidden = hidden
        self._seen: set[str] = set()
        self.media: dict[str, Media] = {}
        self.problems: list[Problem] = []

    def clean(self, html: str) -> str:
        cleaned = nh3.clean(
            html,
            tags=set(raw_html.TAGS),
            attributes={tag: set(names) for tag, names in raw_html.ATTRIBUTES.items()},
            allowed_classes={"ol": {"notes"}},
            link_rel=None,
            url_schemes=set(LINK_SCHEMES),
            attribute_filter=self._attribute,
        )
        # Addresses of other schemes, and such as are none, nh3 takes out without asking the filter.
        for attribute, address in raw_html.addresses(html):
            if unescape(address) not in self._seen:
                drop = self._drop_link if attribute == "href" else self._drop_picture
                drop(self._hidden.in_address(address))
        return cleaned

    def _attribute(self, tag: str, attribute: str, value: str) -> str | None:
        if attribute in ("href", "src"):
            # Browsers read `&copy=1` in an address as it stands, Python as a sign: once more, and both agree.
            self._seen.add(unescape(value))
        if attribute == "href":
            return self._link(self._hidden.in_address(value))
        if attribute == "src":
            return self._picture(self._hidden.in_address(value))
        if attribute == "dir":
            return value.lower() if value.lower() in ("ltr", "rtl", "auto") else None
        return value

    def _link(self, address: str) -> str | None:
        if _scheme(address) in LINK_SCHEMES:
            return address
        self._drop_link(address)
        return None

    def _drop_link(self, address: str) -> None:
        self.problems.append(link_dropped(unquote(address)))

    def _picture(self, address: str) -> str | None:
        scheme = _scheme(address)
        if scheme in WEB_SCHEMES:
            return address
        if scheme or address.startswith(("//", "/", "#")) or not address.strip():
            self._drop_picture(address)
            return None
        path = unquote(address.split("?")[0].split("#")[0])
        if path not in self.media:
            ref = media_ref(len(self.media) + 1)
            self.media[path] = Media(ref, path, PurePosixPath(path).name)
        return self.media[path].ref

    def _drop_picture(self, address: str) -> None:
        message = "This picture is not shown: it must be a file beside the letter, or an https:// address."
        self.problems.append(Problem("picture_dropped", message, cut(unquote(address), SHOWN_ADDRESS_CHARS)))


def _scheme(address: str) -> str:
    """In lower case; empty for a relative address, and "?" for one that cannot be read."""
    try:
        return urlsplit(address.strip()).scheme.lower()
    except ValueError:
        return "?"
