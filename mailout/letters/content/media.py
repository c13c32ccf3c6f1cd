"""Pictures and files of a document: kept somewhere lasting first, then put where the document shows them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from mailout.base.errors import Abort, AbortCode, SourceUnavailable
from mailout.letters.content.document import Document, Media, Problem
from mailout.letters.content.model import mark
from mailout.letters.content.pictures import (
    RECIPE,
    VIDEO_RECIPE,
    PreparedPicture,
    TooLarge,
    has_other_format,
    prepare,
)
from mailout.letters.content.port import MediaStore
from mailout.letters.content.videos import without_picture

HEAVY_BYTES = 1_000_000
"""Of all pictures together: on a bad connection half a minute."""

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
    pictures: dict[str, PreparedPicture] = {}
    problems: list[Problem] = []
    for media in document.media:
        if media.fallback is not None:
            found = _thumbnail(media, read, store, public=public)
            if isinstance(found, Problem):
                problems.append(found)
                document = replace(document, html_body=without_picture(document.html_body, media))
            else:
                urls[media.ref], pictures[media.ref] = found
            continue
        is_shown = f'src="{media.ref}"' in document.html_body
        try:
            data = read(media.source)
            picture = prepare(data) if is_shown else None
            if is_shown and picture is None and not has_other_format(data):
                raise _damaged(media)
            if picture is not None:
                url = store.keep(picture.data, f"picture{picture.suffix}", RECIPE + data)
            else:
                url = store.keep(data, media.name)
        except SourceUnavailable as away:
            raise SourceUnavailable(
                f"{_called(media)} could not be copied: {away.message}.",
                remedy="Send again in some minutes.",
                for_writer=f"“{_called(media)}” cannot be copied just now.",
            ) from away
        except OSError as error:
            raise Abort(
                AbortCode.MEDIA_UNAVAILABLE,
                f"{_called(media)} could not be kept: {error.strerror or error}.",
                remedy="Make it smaller, then send again."
                if isinstance(error, TooLarge)
                else "Check that it is there and can be read, then send again.",
            ) from error
        if public and not _is_public(url):
            raise Abort(
                AbortCode.MEDIA_UNAVAILABLE,
                f"Readers could not see {_called(media)}: it has no public address.",
                remedy="Set PUBLIC_URL (the gateway serves it), MEDIA_BUCKET or MEDIA_SUPABASE_BUCKET.",
                for_writer=f"Readers could not see {_called(media)}: mailout has no public address yet, which"
                " your administrator has to set. Then set the page to Ready again.",
            )
        urls[media.ref] = url
        if picture is not None:
            pictures[media.ref] = picture
        is_sign = f'class="n-emoji" src="{media.ref}"' in document.html_body  # it has a word in its place
        problems += _findings(media, picture, stops=not is_sign) if is_shown else ()
    weight = sum(len(picture.data) for picture in pictures.values())
    if weight > HEAVY_BYTES:
        heavy = f"The pictures weigh {weight / 1e6:.1f} MB together: phones load them slowly. Use fewer."
        problems.append(Problem("pictures_heavy", heavy))
    kept = replace_media(size_pictures(document, pictures), urls)
    return replace(kept, media=(), problems=(*kept.problems, *problems))


def _thumbnail(
    media: Media, read: Callable[[str], bytes], store: MediaStore, *, public: bool
) -> tuple[str, PreparedPicture] | Problem:
    """A video's picture, kept. No letter stops for one that cannot be had: the video is a link, too."""
    try:
        data = read(media.source)
        picture = prepare(data, is_video=True)
    except (OSError, SourceUnavailable) as error:
        return _stays_a_link(
            media, f"its picture could not be had: {getattr(error, 'strerror', None) or error}"
        )
    if picture is None:
        return _stays_a_link(media, "what stands for its picture is none")
    try:
        url = store.keep(picture.data, f"picture{picture.suffix}", VIDEO_RECIPE + data)
    except OSError as error:
        return _stays_a_link(media, f"its picture could not be kept: {error.strerror or error}")
    if public and not _is_public(url):
        return _stays_a_link(media, "its picture would have no public address (set PUBLIC_URL)")
    return url, picture


def _stays_a_link(media: Media, why: str) -> Problem:
    return Problem("video_without_picture", f"This video is a link in the letter: {why}.", media.name)


def _damaged(media: Media) -> Abort:
    return Abort(
        AbortCode.MEDIA_UNAVAILABLE,
        f"{_called(media)} is damaged, or not a picture.",
        remedy="Save it as JPEG or PNG, put it in again, then send again.",
    )


def _is_public(url: str) -> bool:
    return url.startswith(("https://", "http://"))


def _findings(media: Media, picture: PreparedPicture | None, *, stops: bool = True) -> Iterator[Problem]:
    if picture is None:
        message = "Most mail programs cannot show this picture. Save it as JPEG or PNG and put it in again."
        code = AbortCode.MEDIA_UNAVAILABLE if stops else None
        yield Problem("picture_unreadable", message, _called(media), stops=code)
    elif picture.stopped:
        message = "This picture does not move in the letter. Save it as a GIF of at most 3 MB."
        yield Problem("picture_stopped", message, _called(media))


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


def size_pictures(document: Document, pictures: Mapping[str, PreparedPicture]) -> Document:
    """Pictures (by ref) with width and height; a width that was given stays, if the picture is that wide."""

    def size(found: re.Match[str]) -> str:
        attributes = found[1]
        source = re.search(r' src="([^"]*)"', attributes)
        picture = pictures.get(source[1]) if source else None
        if picture is None:
            return found[0]
        given = re.search(r' width="(\d+)"', attributes)
        width = min(int(given[1]), picture.shown_width) if given else picture.shown_width
        height = max(1, round(picture.height * width / picture.width))
        rest = re.sub(r' (?:width|height)="[^"]*"', "", attributes)
        return f'<img{rest} width="{width}" height="{height}">'

    return replace(document, html_body=re.sub(r'<img((?: [a-z-]+="[^"]*")*)>', size, document.html_body))
