"""What a person wrote and wants sent, wherever it was written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mailout.content.document import Document
from mailout.queue.model import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Manuscript:
    """A document and how its author wants it sent."""

    kind: Kind
    ref: str  # its identity: a page id, the front matter's `id`, else the file's name
    document: Document
    is_test: bool = False
    list_key: str | None = None
    from_name: str | None = None
    already_sent: bool = False  # its source says so (a Notion page with `sent_at`)
    read_media: Callable[[str], bytes]  # by `Media.source`; OSError if it cannot be had
