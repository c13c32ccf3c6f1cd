"""Which page or file a person means by a REF."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

NOTION = "https://www.notion.so"
PAGE_ID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)

_ID_AT_END = re.compile(rf"(?:^|[^0-9a-f])({PAGE_ID.pattern})$", re.IGNORECASE)
_HOSTS = re.compile(r"(?:^|\.)(?:notion\.so|notion\.com|notion\.site)$", re.IGNORECASE)


def names_a_file(ref: str) -> bool:
    """A Markdown file, whether or not it is there; or any other that is."""
    if ref.lower().endswith((".md", ".markdown")):
        return True
    try:
        return Path(ref).is_file()
    except (OSError, ValueError):  # nothing that could be a path
        return False


def split_address(written: str) -> SplitResult:
    """What a person wrote may be no address at all: all parts of such a one are empty."""
    try:
        return urlsplit(written)
    except ValueError:
        return urlsplit("")


def page_url(id: object) -> str | None:
    """Where Notion shows a page, database or block."""
    dashed = _dashed(str(id))
    return f"{NOTION}/{dashed.replace('-', '')}" if dashed else None


def page_id_of(ref: str) -> str | None:
    """The page that an id or a Notion address names, as a dashed lower-case id; None: neither.

    In an address opened from a database the page is in `?p=`; `#…` is a block on the page.
    """
    ref = ref.strip()
    if PAGE_ID.fullmatch(ref):
        return _dashed(ref)
    address = split_address(ref if "://" in ref else f"https://{ref}")
    if address.scheme not in ("https", "http", "notion") or not _HOSTS.search(address.hostname or ""):
        return None
    for peek in parse_qs(address.query).get("p", []):
        if found := _dashed(peek):
            return found
    for part in reversed(unquote(address.path).split("/")):
        if found_at_end := _ID_AT_END.search(part):
            return _dashed(found_at_end[1])
    return None


def _dashed(id: str) -> str | None:
    return str(uuid.UUID(id)) if PAGE_ID.fullmatch(id) else None
