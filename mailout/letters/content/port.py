"""What content needs: a source to read a mailout from, a place for media."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from mailout.letters.content.document import Document


class Kind(StrEnum):
    """Where a mailout's content comes from."""

    NOTION = "notion"
    MARKDOWN = "markdown"
    ARTICLE = "article"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceMailout:
    """A document and how its author wants it sent."""

    kind: Kind
    ref: str  # its identity: a page id, the front matter's `id`, else the file's name
    document: Document
    is_test: bool = False
    list_key: str | None = None
    segment: str | None = None  # a filter by name: only these people of its list
    from_name: str | None = None
    reply_to: str | None = None
    public: bool | None = None  # in the archive on the web; None: as its list says
    send_at: float | None = None  # not before; a person who says "for real, now" is heard all the same
    already_sent: bool = False  # its source says so (a Notion page with `sent_at`)
    read_media: Callable[
        [str], bytes
    ]  # by `Media.source`; OSError if it cannot be had, SourceUnavailable: not now


class MediaStore(Protocol):
    """Keeps bytes under a hash and says at which address a reader finds them."""

    def keep(self, data: bytes, name: str, made_of: bytes | None = None) -> str:
        """`made_of`: what names them instead of themselves, so that the same source has one name whoever
        makes it. OSError if they cannot be kept."""


class Source(Protocol):
    """Reads what a person wrote."""

    def load(self, ref: str) -> SourceMailout: ...
