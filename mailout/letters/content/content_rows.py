"""Rendered contents, as they are read."""

from __future__ import annotations

from mailout.base.errors import NotFound
from mailout.base.select import Reads, Table, View, Writes, first
from mailout.letters.content.model import Content

CONTENTS = View("read_contents", Content, ("hash",))
CONTENT_TABLE = Table(
    "contents",
    Content,
    ("hash", "subject", "html", "text", "created_at"),
    at="created_at",
    key=("hash",),
    once=True,
)


def keep_content(store: Writes, content: Content) -> str:
    """Kept by its hash, which it answers."""
    store.put(CONTENT_TABLE, [content])
    return content.hash


def content(store: Reads, content_hash: str) -> Content:
    found = first(store, CONTENTS, {"hash": content_hash})
    if found is None:
        raise NotFound(
            f"The store has no content {content_hash}.",
            remedy="Try again. If it stays so, restore the table contents, or cancel what was to be sent.",
        )
    return found
