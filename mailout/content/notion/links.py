"""Addresses: which links may stand in a mail, and which Notion page somebody means."""

from __future__ import annotations

import re
import uuid
from urllib.parse import parse_qs, unquote, urlsplit

from mailout.content.document import LINK_SCHEMES, WEB_SCHEMES

NOTION = "https://www.notion.so"

_WEB = "|".join(sorted(WEB_SCHEMES))
_OTHER = "|".join(sorted(LINK_SCHEMES - WEB_SCHEMES))
_ALLOWED = re.compile(rf"(?:(?:{_WEB})://[^/?#]|(?:{_OTHER}):.)", re.IGNORECASE)
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f\u200b\ue000\ue001]")
_ID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)
_ID_AT_END = re.compile(rf"(?:^|[^0-9a-f])({_ID.pattern})$", re.IGNORECASE)
_PAGE = re.compile(rf"(?:[\w-]+\.)?notion\.(?:so|com)/{_ID.pattern}", re.IGNORECASE)
_HOSTS = re.compile(r"(?:^|\.)(?:notion\.so|notion\.com|notion\.site)$", re.IGNORECASE)


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


def page_url(id: object) -> str | None:
    """Where Notion shows a page, database or block."""
    dashed = _dashed(str(id))
    return f"{NOTION}/{dashed.replace('-', '')}" if dashed else None


def page_id_of(ref: str) -> str | None:
    """The page that an id or a Notion address names, as a dashed lower-case id; None: neither.

    In an address opened from a database the page is in `?p=`; `#…` is a block on the page.
    """
    ref = ref.strip()
    if _ID.fullmatch(ref):
        return _dashed(ref)
    try:
        address = urlsplit(ref if "://" in ref else f"https://{ref}")
    except ValueError:
        return None
    if address.scheme not in ("https", "http", "notion") or not _HOSTS.search(address.hostname or ""):
        return None
    for peek in parse_qs(address.query).get("p", []):
        if found := _dashed(peek):
            return found
    for part in reversed(unquote(address.path).split("/")):
        if found_at_end := _ID_AT_END.search(part):
            return _dashed(found_at_end[1])
    return None


def file_name(url: str) -> str:
    """The last part of an address's path, as a person would read it; empty when there is none."""
    try:
        return unquote(urlsplit(url).path.rsplit("/", 1)[-1])
    except ValueError:
        return ""


def short(url: str) -> str:
    """An address as a label: no scheme, no query, not long, in letters instead of %-codes."""
    if url.lower().startswith(("mailto:", "tel:")):
        return url.split(":", 1)[1].split("?", 1)[0]
    bare = re.sub(r"^https?://(?:www\.)?", "", url, flags=re.IGNORECASE)
    bare = _INVISIBLE.sub("", unquote(re.split(r"[?#]", bare, maxsplit=1)[0], errors="replace")).rstrip("/")
    if _PAGE.fullmatch(bare):
        return bare.partition("/")[0]  # a page's id says nothing
    return bare if len(bare) <= 60 else f"{bare[:59]}…"


def _dashed(id: str) -> str | None:
    return str(uuid.UUID(id)) if _ID.fullmatch(id) else None
