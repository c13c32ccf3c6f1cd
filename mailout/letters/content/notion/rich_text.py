"""Rich text: Notion's runs of styled text, with their mentions, as HTML and as plain text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby
from typing import Any

from mailout.letters.content.model import MARK_OPEN
from mailout.letters.content.notion.blocks import as_mapping
from mailout.letters.content.notion.equations import readable
from mailout.letters.content.notion.links import file_name, safe_url, web_url
from mailout.letters.content.notion.styles import color_class
from mailout.letters.content.plaintext import readable_address, struck_out
from mailout.letters.content.refs import page_url
from mailout.letters.content.variables import gathered, marked, marked_address

_DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b")
"""Browsers break lines at its hyphens."""

Host = Callable[[str, str, str], str]
"""(key, url, name) → the address that the mail carries for a file that Notion hosts."""


@dataclass(frozen=True, slots=True)
class Span:
    """A run of text in one style. `image` stands in for the text where pictures can be shown."""

    text: str
    href: str | None = None
    bold: bool = False
    italic: bool = False
    strikethrough: bool = False
    underline: bool = False
    code: bool = False
    color: str = "default"
    image: str | None = None


Spans = tuple[Span, ...]


def spans_of(items: object, host: Host, *, literal: bool = False) -> Spans:
    """From the API's `rich_text`. Runs without text are left out. `literal`: code, in which `{{ name }}` is
    no variable.

    Notion cuts text into runs as it likes: a variable may be in several, and looks as the first of them.
    """
    found = ((_span(run, host), run.get("type") == "text") for run in runs_of(items))
    spans: list[Span] = []
    for takes_variables, run in groupby(found, lambda one: one[1] and not (literal or one[0].code)):
        same = [span for span, _ in run]
        texts = [span.text for span in same]
        if takes_variables:
            texts = [marked(text) for text in gathered(texts)]
        spans += [replace(span, text=text) for span, text in zip(same, texts, strict=True)]
    return tuple(span for span in spans if span.text)


def runs_of(items: object) -> list[Mapping[str, Any]]:
    """Whatever stands where the API promises a list of them."""
    if not isinstance(items, Sequence) or isinstance(items, str):
        return []
    return [item for item in items if isinstance(item, Mapping)]


def dropped_links(items: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Where runs would lead if a mail could carry it, each once."""
    addresses = (item.get("href") or _link_of(item) for item in items if item.get("plain_text"))
    written = (one.strip() for one in addresses if isinstance(one, str))
    return tuple(dict.fromkeys(one for one in written if one and safe_url(one) is None))


def _link_of(item: Mapping[str, Any]) -> object:
    return as_mapping(as_mapping(item.get("text")).get("link")).get("url")


def _span(item: Mapping[str, Any], host: Host) -> Span:
    style = as_mapping(item.get("annotations"))
    text, href, image = _content(item, host)
    said = readable(text) if item.get("type") == "equation" else None
    return Span(
        text=said or text,
        href=href,
        bold=bool(style.get("bold")),
        italic=bool(style.get("italic")) or bool(said),
        strikethrough=bool(style.get("strikethrough")),
        underline=bool(style.get("underline")),
        code=bool(style.get("code")) or (item.get("type") == "equation" and not said),
        color=str(style.get("color") or "default"),
        image=image,
    )


def _content(item: Mapping[str, Any], host: Host) -> tuple[str, str | None, str | None]:
    """What a run says, where it leads, and the picture it is."""
    plain = str(item.get("plain_text") or "")
    href = safe_url(item.get("href"))
    if item.get("type") == "equation":
        return str(as_mapping(item.get("equation")).get("expression") or plain), href, None
    if item.get("type") != "mention":
        link = href or safe_url(_link_of(item))
        text = plain or str(as_mapping(item.get("text")).get("content") or "")
        return text, marked_address(link) if link else None, None
    mention = as_mapping(item.get("mention"))
    kind = str(mention.get("type") or "")
    value = as_mapping(mention.get(kind))
    match kind:
        case "user":
            return f"@{value['name']}" if value.get("name") else plain or "@Anonymous", None, None
        case "date":
            return _dates(value) or plain, None, None
        case "page" | "database" | "data_source":
            return plain or "Untitled", href or page_url(value.get("id")), None
        case "link_mention" | "link_preview":
            link = href or safe_url(value.get("href") or value.get("url"))
            title = str(value.get("title") or "")
            return plain or title or str(value.get("link_provider") or "") or link or "", link, None
        case "custom_emoji":
            url = web_url(value.get("url"))
            image = host(f"emoji {value.get('id')}", url, file_name(url)) if url else None
            return plain or (f":{value['name']}:" if value.get("name") else ""), None, image
        case "template_mention":  # a template's own words: `today`, `now`, `me`
            word = str(value.get(str(value.get("type"))) or "")
            return plain or (f"@{word.capitalize()}" if word else ""), None, None
        case _:
            return plain, href, None


def _dates(value: Mapping[str, Any]) -> str:
    """`start → end`, with the zone and a shared day said once: `2026-11-15 09:00 → 10:30 (UTC+01:00)`."""
    start, end = str(value.get("start") or ""), str(value.get("end") or "")
    zone = str(value.get("time_zone") or "")
    if not end:
        return f"{_moment(start)}{_zone(start, zone)}"
    first = "" if _zone(start, zone) == _zone(end, zone) else _zone(start, zone)
    last = end[11:16] if "T" in end and end[:10] == start[:10] else _moment(end)
    return f"{_moment(start)}{first} → {last}{_zone(end, zone)}"


def _moment(iso: str) -> str:
    return iso[:16].replace("T", " ")


def _zone(iso: str, name: str) -> str:
    """Days have none; a moment without an offset is in UTC, as the API says."""
    if "T" not in iso:
        return ""
    offset = re.search(r"[+-]\d\d:\d\d$", iso)
    utc = f"UTC{offset[0]}" if offset and offset[0] != "+00:00" else "UTC"
    return f" ({name or utc})"


# ── As HTML ──────────────────────────────────────────────────────────────────────────────────────


def inline_html(spans: Spans, *, verbatim: bool = False) -> str:
    """Everything escaped. `verbatim`: line breaks stay what they are (inside `<pre>`)."""
    parts = []
    for href, run in groupby(spans, key=lambda span: span.href):
        inner = "".join(_span_html(span, verbatim) for span in run)
        parts.append(f'<a href="{escape(href)}">{inner}</a>' if href else inner)
    return "".join(parts)


def _span_html(span: Span, verbatim: bool) -> str:
    html = escape(span.text)
    if not verbatim:
        html = html.replace("\n", "<br>")
    if not (verbatim or MARK_OPEN in html):  # within a mark nothing may change
        html = _DAY.sub(r'<span class="n-day">\g<0></span>', html)
    if span.image:
        source = f'src="{escape(span.image)}" alt="{escape(span.text)}"'
        html = f'<img class="n-emoji" {source} width="18" height="18">'
    if span.code:
        html = f"<code>{html}</code>"
    for tag, wanted in (
        ("s", span.strikethrough),
        ("u", span.underline),
        ("em", span.italic),
        ("strong", span.bold),
    ):
        if wanted:
            html = f"<{tag}>{html}</{tag}>"
    if colored := color_class(span.color):
        html = f'<span class="{colored}">{html}</span>'
    return html


# ── As text ──────────────────────────────────────────────────────────────────────────────────────


def inline_text(spans: Spans) -> str:
    """Links carry their address behind them, once."""
    parts = []
    for href, run in groupby(spans, key=lambda span: span.href):
        label = ""
        for is_struck, same in groupby(run, key=lambda span: span.strikethrough):
            words = "".join(span.text for span in same)
            label += struck_out(words) if is_struck else words
        if label:
            parts.append(with_address(label, href))
    return "".join(parts)


def with_address(label: str, href: str | None) -> str:
    """`label (address)`; the address alone when the label says the same."""
    if not href:
        return label
    address = readable_address(href)
    if _bare(label) == _bare(address):
        return label.replace(label.strip(), address, 1)
    stripped = label.rstrip()
    return f"{stripped} ({address}){label[len(stripped) :]}" if stripped else address


def plain(spans: Iterable[Span]) -> str:
    """The words alone, on one line: for labels and `alt`."""
    return " ".join("".join(span.text for span in spans).split())


def _bare(address: str) -> str:
    return re.sub(r"^https?://(?:www\.)?", "", address.strip(), flags=re.IGNORECASE).rstrip("/").lower()
