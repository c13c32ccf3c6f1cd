"""Pictures and files of a document: kept somewhere lasting first, then put where the document shows them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import PurePosixPath

from PIL import Image

from mailout.base.errors import Abort, AbortCode
from mailout.letters.content.document import Document, Media
from mailout.letters.content.model import mark
from mailout.letters.content.port import MediaStore

COLUMN = 520
"""Pixels between the layout's margins. Outlook knows no max-width: a wider picture must say so itself."""


CONTENT_TYPES: Mapping[str, str] = {
    ".avif": "image/avif",
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
    ".m4a": "audio/mp4",
    ".mp3": "audio/mpeg",
    ".oga": "audio/ogg",
    ".ogg": "audio/ogg",
    ".wav": "audio/wav",
    ".mov": "video/quicktime",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
    ".pdf": "application/pdf",
    ".txt": "text/plain; charset=utf-8",
}
DOWNLOAD = "application/octet-stream"
"""What a browser may show, and what everything else is: HTML from our address would speak in our name."""


def kept_name(data: bytes, name: str) -> str:
    """Their hash, with the extension of the name they came under."""
    suffix = PurePosixPath(name).suffix.lower()
    extension = suffix if re.fullmatch(r"\.[a-z0-9]{1,5}", suffix) else ""
    return hashlib.sha256(data).hexdigest() + extension


def content_type(name: str) -> str:
    return CONTENT_TYPES.get(PurePosixPath(name).suffix, DOWNLOAD)


def media_ref(number: int) -> str:
    """A mark, so that nothing a person types can be mistaken for it."""
    return mark(f"media {number}")


def keep_media(
    document: Document, read: Callable[[str], bytes], store: MediaStore, *, public: bool = False
) -> Document:
    """Keep every picture and file, or stop the mailout: a mail with holes in it must not leave.

    `public`: readers must be able to get them from where they are.
    """
    urls: dict[str, str] = {}
    widths: dict[str, int] = {}
    for media in document.media:
        try:
            data = read(media.source)
            url = urls[media.ref] = store.keep(data, media.name)
        except OSError as error:
            raise Abort(
                AbortCode.MEDIA_UNAVAILABLE,
                f"{_called(media)} could not be kept: {error.strerror or error}.",
                remedy="Check that it is there and can be read, then send again.",
            ) from error
        if public and not url.startswith(("https://", "http://")):
            raise Abort(
                AbortCode.MEDIA_UNAVAILABLE,
                f"Readers could not see {_called(media)}: it has no public address.",
                remedy="Set PUBLIC_URL (the gateway serves it), MEDIA_BUCKET or MEDIA_SUPABASE_BUCKET.",
            )
        width = picture_width(data)
        if width:
            widths[media.ref] = min(width, COLUMN)
    return replace_media(size_pictures(document, widths), urls)


def _called(media: Media) -> str:
    """As a person knows it: the address of a hosted file says little, and may open it to anybody."""
    return media.name if media.name and "://" in media.source else media.source.partition("?")[0]


def replace_media(document: Document, urls: Mapping[str, str]) -> Document:
    """The same document with addresses (by ref) where its media stood.

    Addresses come from a media store and hold nothing that HTML would have to escape.
    """
    if not urls:
        return document
    pattern = re.compile("|".join(re.escape(ref) for ref in urls))
    html, text = (
        pattern.sub(lambda found: urls[found[0]], body) for body in (document.html_body, document.text_body)
    )
    return replace(document, html_body=html, text_body=text, media=())


def size_pictures(document: Document, widths: Mapping[str, int]) -> Document:
    """Pictures (by ref) with their width; one that was given stays, if the picture is that wide."""

    def size(found: re.Match[str]) -> str:
        attributes = found[1]
        source = re.search(r' src="([^"]*)"', attributes)
        width = widths.get(source[1]) if source else None
        if not width:
            return found[0]
        given = re.search(r' width="(\d+)"', attributes)
        if given:
            return found[0].replace(given[0], f' width="{min(width, int(given[1]))}"')
        return f'<img{attributes} width="{width}">' if " width=" not in attributes else found[0]

    return replace(document, html_body=re.sub(r'<img((?: [a-z-]+="[^"]*")*)>', size, document.html_body))


def picture_width(data: bytes) -> int | None:
    """Of a PNG, GIF or JPEG, in pixels; None for what this cannot read."""
    try:
        with Image.open(BytesIO(data), formats=("PNG", "GIF", "JPEG")) as picture:
            return picture.width
    except Exception:  # noqa: BLE001 (decoders raise whatever a broken file makes them stumble over)
        return None
