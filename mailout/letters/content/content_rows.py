"""Rendered contents, as they are read."""

from __future__ import annotations

from mailout.base.errors import NotFound
from mailout.base.select import Reads, View, first
from mailout.letters.content.model import Content

CONTENTS = View("read_contents", Content, ("hash",))


def content(store: Reads, content_hash: str) -> Content:
    found = first(store, CONTENTS, {"hash": content_hash})
    if found is None:
        raise NotFound(f"There is no content {content_hash}.")
    return found
