"""A Markdown file → a document: front matter, e-mail-safe HTML, and text made from that HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import nh3
import yaml
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from mailout.base.errors import UsageError
from mailout.letters.content.brand import BUTTON
from mailout.letters.content.document import (
    LINK_SCHEMES,
    WEB_SCHEMES,
    Document,
    Media,
    Problem,
    language_of,
    one_line,
    preheader_of,
)
from mailout.letters.content.media import media_ref
from mailout.letters.content.model import clean
from mailout.letters.content.plaintext import plain_text
from mailout.letters.content.variables import Hidden, literal_braces, marked

BUTTON_QUOTE = re.compile(
    r'<blockquote>\s*<p><a href="([^"]*)">((?:(?!</?a\b|<br|<img).)*)</a></p>\s*</blockquote>'
)
"""A link that is all of a quote: nobody quotes that, so it is a button."""
ALIGNED = re.compile(r"text-align:(left|right|center)")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What stands between the two `---` lines at the top of the file."""

    id: str | None = None
    subject: str = ""
    test: bool | None = None
    from_name: str | None = None
    list: str | None = None
    preheader: str = ""
    date: date | None = None
    language: str | None = None


KEYS = [field.name for field in fields(FrontMatter)]


@dataclass(frozen=True, slots=True)
class MarkdownMailout:
    """A whole file: how to send it, and what to send."""

    front: FrontMatter
    document: Document


def parse_markdown(written: str, name: str) -> MarkdownMailout:
    """`name` is the file's, for error messages. Pictures beside the file become the document's media."""
    front, body = _split(clean(written).removeprefix("\ufeff"), name)
    settings = _front_matter(front, name)
    hidden = Hidden()
    sieve = _Sanitizer(hidden)
    html = hidden.show(sieve.clean(_markdown().render(hidden.hide(body))).strip())
    text = plain_text(BUTTON_QUOTE.sub(r'<p>→ <a href="\1">\2</a></p>', html))
    html = BUTTON_QUOTE.sub(lambda found: BUTTON.format(address=found[1], words=found[2]), html)
    document = Document(
        subject=marked(settings.subject),
        html_body=html,
        text_body=text,
        preheader=marked(settings.preheader) or preheader_of(text),
        problems=tuple(sieve.problems),
        media=tuple(sieve.media.values()),
        lang=language_of(text),
        language=settings.language,
        date=settings.date,
        literals=literal_braces(settings.subject, settings.preheader, body),
    )
    return MarkdownMailout(settings, document)


# ── Front matter ─────────────────────────────────────────────────────────────────────────────────


def _split(written: str, name: str) -> tuple[str, str]:
    lines = written.splitlines(keepends=True)
    if not lines or lines[0].rstrip() != "---":
        return "", written
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() in ("---", "..."):
            return "".join(lines[1:number]), "".join(lines[number + 1 :])
    raise UsageError(
        f"{name}: the front matter that begins in line 1 has no end.",
        remedy="Put a line with --- alone after it.",
    )


def _front_matter(source: str, name: str) -> FrontMatter:
    """Read by nodes, not by values: each key knows its line, and `id: 007` stays 007."""
    try:
        node = yaml.compose(source, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 2}" if mark else ""
        what = getattr(error, "problem", None) or error
        raise UsageError(
            f"{name}: the front matter cannot be read{where}: {what}.",
            remedy="Write one `key: value` a line; put a value that holds a colon in quotes.",
        ) from error
    if node is None:
        return FrontMatter()
    if not isinstance(node, yaml.MappingNode):
        raise UsageError(
            f"{name}: the front matter is not a list of `key: value` lines.",
            remedy=f"Write one a line; known keys are {', '.join(KEYS)}.",
        )
    found: dict[str, Any] = {}
    for key, value in node.value:
        line = key.start_mark.line + 2
        if key.value not in KEYS:
            raise UsageError(
                f"{name}, line {line}: `{key.value}` is no key of the front matter.",
                remedy=f"Known are {', '.join(KEYS)}.",
            )
        if key.value in found:
            raise UsageError(
                f"{name}, line {line}: `{key.value}` is given twice.", remedy="Remove one of the two lines."
            )
        found[key.value] = _value(key.value, value, f"{name}, line {line}")
    return FrontMatter(**{key: value for key, value in found.items() if value is not None})


def _value(key: str, node: yaml.Node, where: str) -> str | bool | date | None:
    if not isinstance(node, yaml.ScalarNode):
        raise UsageError(f"{where}: `{key}` takes one value.", remedy=f"Write it as `{key}: value`.")
    if node.tag == "tag:yaml.org,2002:null":
        return None
    if key == "date":
        return _date(node.value, where)
    if key == "language" and not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z]{2,4})?", node.value):
        raise UsageError(
            f"{where}: `language` is no language's code: {node.value!r}.",
            remedy="Write it as `language: en`.",
        )
    if key != "test":
        return one_line(node.value)
    if node.tag != "tag:yaml.org,2002:bool":
        raise UsageError(
            f"{where}: `test` is true or false, not {node.value!r}.",
            remedy="Write `test: true` or leave it out.",
        )
    return str(node.value).lower() in ("true", "yes", "on")


def _date(written: str, where: str) -> date:
    try:
        return datetime.fromisoformat(written.strip()).date()
    except ValueError:
        raise UsageError(
            f"{where}: `date` is no day: {written!r}.", remedy="Write it as `date: 2026-12-04`."
        ) from None


# ── Body ─────────────────────────────────────────────────────────────────────────────────────────


class _Renderer(RendererHTML):
    """markdown-it's own, with cells aligned by an attribute: `style` does not pass the sieve."""

    def _aligned(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        aligned = ALIGNED.search(str(tokens[idx].attrs.pop("style", "")))
        if aligned:
            tokens[idx].attrs["align"] = aligned[1]
        return self.renderToken(tokens, idx, options, env)

    th_open = td_open = _aligned


def _markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", renderer_cls=_Renderer).enable(["table", "strikethrough"])
    # Every address reaches the sieve, which keeps the words where it drops the link.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser


class _Sanitizer:
    """Lets through what mail may carry (raw HTML comes here too), and notes pictures and dropped links."""

    def __init__(self, hidden: Hidden) -> None:
        self._hidden = hidden
        self.media: dict[str, Media] = {}
        self.problems: list[Problem] = []

    def clean(self, html: str) -> str:
        return nh3.clean(
            html,
            link_rel=None,
            url_schemes=set(LINK_SCHEMES),
            attribute_filter=self._attribute,
        )

    def _attribute(self, tag: str, attribute: str, value: str) -> str | None:
        if attribute == "href":
            return self._link(self._hidden.in_address(value))
        if attribute == "src":
            return self._picture(self._hidden.in_address(value))
        return value if attribute not in ("cite", "longdesc") else None

    def _link(self, address: str) -> str | None:
        if _scheme(address) in LINK_SCHEMES:
            return address
        message = "This link leads nowhere in a mail; its words stay."
        self.problems.append(Problem("link_dropped", message, address))
        return None

    def _picture(self, address: str) -> str | None:
        scheme = _scheme(address)
        if scheme in WEB_SCHEMES:
            return address
        if scheme or address.startswith(("//", "/", "#")) or not address.strip():
            message = "A mail can show http(s) pictures and files beside it."
            self.problems.append(Problem("picture_dropped", message, address))
            return None
        path = unquote(address.split("?")[0].split("#")[0])
        if path not in self.media:
            ref = media_ref(len(self.media) + 1)
            self.media[path] = Media(ref, path, PurePosixPath(path).name)
        return self.media[path].ref


def _scheme(address: str) -> str:
    """In lower case; empty for a relative address, and "?" for one that cannot be read."""
    try:
        return urlsplit(address.strip()).scheme.lower()
    except ValueError:
        return "?"
