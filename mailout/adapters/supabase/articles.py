"""Slices and batches of articles on Supabase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.rpc import Rpc, by_pages
from mailout.kinds.articles.port import ArticleBatch, Member, SliceCounts
from mailout.letters.audience.segment_tree import Tree
from mailout.letters.content.slices import Slice
from mailout.outbox.queue.mailout import Mailout, NewMailout

_PART = 5_000


class SupabaseArticles:
    """Fulfils `Articles`."""

    rpc: Rpc

    def import_slices(self, slices: Sequence[Slice]) -> SliceCounts:
        if not slices:
            return SliceCounts()
        counts = self.rpc("mailout_import_slices", {"slices": [_values(one) for one in slices]})
        added = len(slices) - counts["known"]
        return SliceCounts(added, counts["written"] - added, len(slices) - counts["written"])

    def enqueue_article(self, new: NewMailout, batch: ArticleBatch) -> Mailout:
        written = {
            "article_key": batch.article_key,
            "audience": dict(batch.audience_filter),
            "as_of": batch.as_of,
            "slices": [_values(one) for one in batch.slices],
            "contents": dict(batch.contents),
            "census": dict(batch.census),
        }
        return codec.mailout(self.rpc("mailout_enqueue_article", {"mailout": asdict(new), "batch": written}))

    def members(
        self,
        *,
        after: str = "",
        limit: int,
        list_key: str,
        segment: Tree | None = None,
        existed_at: float | None = None,
        snoozed: bool = False,
    ) -> Sequence[Member]:
        params = {"list_key": list_key, "segment": segment, "existed_at": existed_at, "snoozed": snoozed}
        rows = by_pages(self.rpc, "mailout_members", params, after=after, limit=limit, page=_PART, key=0)
        return [Member(*row) for row in rows]


def _values(one: Slice) -> dict[str, Any]:
    return {**asdict(one), "tags": list(one.tags)}
