"""A Markdown file on disk, and the pictures beside it."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace
from functools import partial
from pathlib import Path

from mailout.base.errors import Abort, AbortCode, UsageError
from mailout.letters.content.document import Media
from mailout.letters.content.markdown import MarkdownMailout, parse_markdown
from mailout.letters.content.pictures import TooLarge, require_picture
from mailout.letters.content.port import Kind, SourceMailout
from mailout.letters.content.videos import with_thumbnails


class MarkdownFiles:
    """Mailouts in files on disk: a `Source` for paths.

    `fetch`: the bytes at an address, for the pictures of videos; without it those stay links.
    """

    def __init__(self, fetch: Callable[[str], bytes] | None = None) -> None:
        self._fetch = fetch

    def load(self, ref: str) -> SourceMailout:
        path = Path(ref)
        mailout = read_markdown(path)
        options, document = mailout.options, mailout.document
        if self._fetch is not None:
            document = with_thumbnails(document)
        read_media = partial(self._read, {one.source for one in document.media if one.fallback})
        return options.mailout(Kind.MARKDOWN, options.id or path.name, document, read_media)

    def _read(self, videos: Set[str], source: str) -> bytes:
        return self._fetch(source) if self._fetch is not None and source in videos else read_picture(source)


def read_markdown(path: Path) -> MarkdownMailout:
    """The file's mailout; its media are files that are there. Their `source` is a path to read."""
    mailout = parse_markdown(_text_of(path), path.name)
    media = tuple(_found(each, path) for each in mailout.document.media)
    return replace(mailout, document=replace(mailout.document, media=media))


def read_picture(source: str) -> bytes:
    """The reader that `keep_media` needs for a Markdown file. Decoded first: a name proves nothing."""
    data = Path(source).read_bytes()
    try:
        require_picture(data)
    except TooLarge as error:
        raise Abort(
            AbortCode.MEDIA_UNAVAILABLE, f"{source} cannot be shown: {error}.", remedy="Make it smaller."
        ) from error
    except Exception as error:  # decoders raise whatever a broken file makes them stumble over
        raise Abort(
            AbortCode.MEDIA_UNAVAILABLE,
            f"{source} is not a picture that can be shown, or is damaged.",
            remedy="Save it as PNG, JPEG, GIF, WebP or AVIF, and try again.",
        ) from error
    return data


def _text_of(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise UsageError(f"There is no file {path}.", remedy="Check the name and the folder.") from None
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}.", remedy="Check that it is a file that you may read."
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not UTF-8 (byte {error.start}).", remedy="Save it as UTF-8 and try again."
        ) from error
    except ValueError as error:  # a NUL in the name
        raise UsageError(f"{str(path)!r} is no file's name.") from error


def _found(media: Media, beside: Path) -> Media:
    """Only what lies in the letter's folder: whatever it names is copied to where everybody can read it."""
    folder = beside.parent.resolve()
    file = (folder / media.source).resolve()
    if not file.is_relative_to(folder):
        raise Abort(
            AbortCode.MEDIA_UNAVAILABLE,
            f"{beside.name} shows {media.source}, which is outside of its folder.",
            remedy="Put the picture itself into the folder of the text, and name it there.",
        )
    if not file.is_file():
        raise Abort(
            AbortCode.MEDIA_UNAVAILABLE,
            f"{beside.name} shows {media.source}, and there is no such file beside it.",
            remedy="Put the picture there, or correct its name in the text.",
        )
    try:
        read_picture(str(file))
    except OSError as error:
        raise Abort(
            AbortCode.MEDIA_UNAVAILABLE,
            f"{beside.name} shows {media.source}, which cannot be read: {error.strerror}.",
            remedy="Check that it is a file that you may read.",
        ) from error
    return replace(media, source=str(file))
