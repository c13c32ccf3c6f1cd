"""Links and files of a page: which may be in a mail, how they are labelled, which of them Notion hosts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from mailout.letters.content.document import LINK_SCHEMES, WEB_SCHEMES, Media
from mailout.letters.content.media import media_ref
from mailout.letters.content.model import MARK_OPEN
from mailout.letters.content.notion.blocks import Block, as_mapping
from mailout.letters.content.refs import NOTION, PAGE_ID, split_address
from mailout.letters.content.variables import marked_address
from mailout.letters.content.videos import thumbnail_of, video_ref

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
    return unquote(split_address(url).path.rsplit("/", 1)[-1])


def title_of(url: str) -> str:
    """What a page is probably called, by the last words of its address; empty: those say nothing.

    Nothing is fetched: two renders have to give the same bytes, and an address may lead anywhere.
    """
    last = unquote(split_address(url).path.rstrip("/").rsplit("/", 1)[-1], errors="replace")
    words = re.sub(r"\.(?:html?|php|aspx?)$", "", _INVISIBLE.sub("", last), flags=re.IGNORECASE)
    words = re.sub(r"[-_+\s]+", " ", words).strip()
    is_said = len(re.findall(r"[^\W\d_]{2,}", words)) >= 2 and not re.search(r"[0-9a-f]{16,}", words)
    return words[0].upper() + words[1:] if is_said else ""


def site_of(url: str) -> str:
    """Whose page it is: the host, as people say it."""
    return (split_address(url).hostname or "").removeprefix("www.")


def short(url: str) -> str:
    """An address as a label: no scheme, no query, not long, in letters instead of %-codes."""
    if url.lower().startswith(("mailto:", "tel:")):
        return url.split(":", 1)[1].split("?", 1)[0]
    bare = re.sub(r"^https?://(?:www\.)?", "", url, flags=re.IGNORECASE)
    written = unquote(re.split(r"[?#]", bare, maxsplit=1)[0], errors="replace")
    bare = _INVISIBLE.sub("", written).rstrip("/")
    if _PAGE.fullmatch(bare) or MARK_OPEN in written:
        return bare.partition("/")[0]  # a page's id says nothing, nor does a variable
    return bare if len(bare) <= 60 else f"{bare[:59]}…"


class HostedFiles:
    """Collects the hosted files of one page, each once: a synced copy shows the same file again."""

    def __init__(self) -> None:
        self._kept: dict[str, Media] = {}

    @property
    def media(self) -> tuple[Media, ...]:
        return tuple(self._kept.values())

    def host(self, key: str, url: str, name: str) -> str:
        """What stands for a file that Notion hosts until it is kept: its own address lives an hour."""
        if key not in self._kept:
            self._kept[key] = Media(media_ref(len(self._kept) + 1), url, name)
        return self._kept[key].ref

    def file(self, block: Block) -> tuple[str | None, str]:
        """Where the file of an image, video, audio, file or pdf block is, and what it is called."""
        url = _url(block.data)
        name = str(block.data.get("name") or "")
        if url is None:
            return None, name
        if block.data.get("type") != "external":
            name = name or file_name(url)
            return self.host(block.id, url, name), name
        # Addresses such as youtube.com/watch have no file name worth reading.
        guessed = file_name(url)
        return marked_address(url), name or (guessed if "." in guessed else "")

    def video(self, url: str, fallback: str) -> str | None:
        """What stands for the picture of a video elsewhere; None: nobody knows where that is."""
        source = thumbnail_of(url)
        if source is None:
            return None
        key = f"video {url} {fallback}"
        if key not in self._kept:
            self._kept[key] = Media(video_ref(len(self._kept) + 1), source, url, fallback)
        return self._kept[key].ref

    def icon(self, block: Block) -> str | None:
        """The address of the picture that a callout has for an icon, if it has one."""
        icon = as_mapping(block.data.get("icon"))
        url = _url(icon)
        if url is None or icon.get("type") == "external":
            return url
        return self.host(f"{block.id} icon", url, file_name(url))


def _url(file: Mapping[str, object]) -> str | None:
    """`{"type": "file", "file": {"url": …}}`, and the same for `external` and `custom_emoji`."""
    return web_url(as_mapping(file.get(str(file.get("type")))).get("url"))
