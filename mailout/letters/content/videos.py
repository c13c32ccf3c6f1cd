"""Videos, which no mail plays: their picture with a play mark, which leads to them."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape, unescape
from urllib.parse import parse_qs

from mailout.letters.content.document import Document, Media
from mailout.letters.content.model import mark
from mailout.letters.content.pictures import COLUMN
from mailout.letters.content.refs import split_address

THUMBNAILS = "https://i.ytimg.com/vi/{id}/hqdefault.jpg"
"""Vimeo's would have to be asked for: its videos stay links."""
YOUTUBE_HOSTS = frozenset({"youtube.com", "m.youtube.com", "music.youtube.com", "youtube-nocookie.com"})
YOUTUBE_ID = re.compile(r"[A-Za-z0-9_-]{11}")
SIGN = "▶️"
LINK_ALONE = re.compile(r'<p>(<a href="([^"]*)">([^<>]*)</a>)</p>')


def thumbnail_of(url: str) -> str | None:
    """Where the picture of a video is; None: no video whose picture is known. The host is never the author's
    choice, so nothing else can be fetched."""
    parts = split_address(url)
    host = (parts.hostname or "").removeprefix("www.")
    if parts.scheme not in ("http", "https"):
        return None
    first, *more = parts.path.strip("/").split("/")
    id = ""
    if host == "youtu.be":
        id = first
    elif host in YOUTUBE_HOSTS and first == "watch":
        id = parse_qs(parts.query).get("v", [""])[0]
    elif host in YOUTUBE_HOSTS and first in ("embed", "shorts", "live", "v") and more:
        id = more[0]
    return THUMBNAILS.format(id=id) if YOUTUBE_ID.fullmatch(id) else None


def video_ref(number: int) -> str:
    """What stands for its picture until that is kept."""
    return mark(f"media video {number}")


def figure(url: str, ref: str, caption: str = "", width: int = COLUMN) -> str:
    """`caption`: HTML. Without pictures the mark and where it leads are still there."""
    address = escape(url)
    alt = SIGN if caption else f"{SIGN} {address}"
    below = f'<p class="caption">{caption}</p>' if caption else ""
    picture = f'<a href="{address}"><img src="{ref}" alt="{alt}" width="{max(width, 40)}"></a>'
    return f'<div class="figure video">{picture}{below}</div>'


def without_picture(html: str, media: Media) -> str:
    """The letter with a link where the picture of this video was to be."""
    begins = rf'<div class="figure video"><a href="[^"]*"><img src="{re.escape(media.ref)}"'
    return re.sub(f"{begins}.*?</div>", lambda _: media.fallback or "", html, flags=re.DOTALL)


def with_thumbnails(document: Document) -> Document:
    """A bare link to a video, alone in its paragraph, becomes the video's picture."""
    videos: dict[str, Media] = {}

    def shown(found: re.Match[str]) -> str:
        url, said = unescape(found[2]), unescape(found[3])
        source = thumbnail_of(url)
        if source is None or said not in (url, url.partition("://")[2]):
            return found[0]
        video = videos.setdefault(url, Media(video_ref(len(videos) + 1), source, url, fallback=found[0]))
        return figure(url, video.ref)

    html = LINK_ALONE.sub(shown, document.html_body)
    return replace(document, html_body=html, media=(*document.media, *videos.values()))
