"""What is read of articles: slices and batches."""

from __future__ import annotations

from collections.abc import Sequence

from mailout.base.errors import NotFound
from mailout.base.select import Reads, View, every, first
from mailout.kinds.articles.port import ArticleBatch
from mailout.letters.content.slices import Slice

SLICES = View("read_slices", Slice, ("id",))
BATCHES = View("read_article_batches", ArticleBatch, ("mailout",), ArticleBatch.of)


def slices(store: Reads, article_key: str | None = None) -> Sequence[Slice]:
    """Of one article or of all, whatever their status."""
    filters = {} if article_key is None else {"article_key": article_key}
    return sorted(every(store, SLICES, filters), key=lambda one: one.place)


def article_batch(store: Reads, id: str) -> ArticleBatch:
    batch = first(store, BATCHES, {"mailout": id})
    if batch is None:
        raise NotFound(f"Mailout {id} is no batch of an article.")
    return batch
