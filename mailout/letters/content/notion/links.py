"""Which links may be in a mail, and how they are labelled."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from mailout.letters.content.document import LINK_SCHEMES, WEB_SCHEMES
from mailout.letters.content.refs import NOTION, PAGE_ID

_WEB = "|".join(sorted(WEB_SCHEMES))
_OTHER = "|".join(sorted(LINK_SCHEMES - WEB_SCHEMES))
_ALLOWED = re.compile(rf"(?:(?:{_WEB})://[^/?#]|(?:{_OTHER}):.)", re.IGNORECASE)
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f\u200b\ue000\ue001]")
_PAGE = re.compile(rf"(?:[\w-]+\.)?notion\.(?:so|com)/{PAGE_ID.pattern}", re.IGNORECASE)


def safe_url(href: object) -> str | None:
    """The link if a mail may carry it: http, https, mailto, tel; Notion's relative ones become absolute.

    Browsers drop tabs and line breaks inside a scheme, so they go before the scheme is looked at.
    """
    if not isinstance(href, str):
        return None
    url = _INVISIBLE.sub("", href).strip().replace(" ", "%20")
    if url.startswith("/") and not url.startswith(("//", "/\\")):
        return NOTION + url
    return url if _ALLOWED.match(url) else None


def web_url(href: object) -> str | None:
    """As `safe_url`, for what a client loads by itself."""
    url = safe_url(href)
    return url if url and url.lower().startswith("http") else None


def file_name(url: str) -> str:
    """The last part of an address's path, as a person would read it; empty when there is none."""
    try:
        return unquote(urlsplit(url).path.rsplit("/", 1)[-1])
    except ValueError:
        return ""


def title_of(url: str) -> str:
    """What a page is probably called, by the last words of its address; empty: those say nothing.

    Nothing is fetched: two renders have to give the same bytes, and an address may lead anywhere.
    """
    try:
        last = unquote(urlsplit(url).path.rstrip("/").rsplit("/", 1)[-1], errors="replace")
    except ValueError:
        return ""
    words = re.sub(r"\.(?:html?|php|aspx?)$", "", _INVISIBLE.sub("", last), flags=re.IGNORECASE)
    words = re.sub(r"[-_+\s]+", " ", words).strip()
    is_said = len(re.findall(r"[^\W\d_]{2,}", words)) >= 2 and not re.search(r"[0-9a-f]{16,}", words)
    return words[0].upper() + words[1:] if is_said else ""


def site_of(url: str) -> str:
    """Whose page it is: the host, as people say it."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return host.removeprefix("www.")


def short(url: str) -> str:
    """An address as a label: no scheme, no query, not long, in letters instead of %-codes."""
    if url.lower().startswith(("mailto:", "tel:")):
        return url.split(":", 1)[1].split("?", 1)[0]
    bare = re.sub(r"^https?://(?:www\.)?", "", url, flags=re.IGNORECASE)
    bare = _INVISIBLE.sub("", unquote(re.split(r"[?#]", bare, maxsplit=1)[0], errors="replace")).rstrip("/")
    if _PAGE.fullmatch(bare):
        return bare.partition("/")[0]  # a page's id says nothing
    return bare if len(bare) <= 60 else f"{bare[:59]}…"
