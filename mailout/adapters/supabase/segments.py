"""Segments on Supabase: the tree goes as jsonb; SQL is made of it there."""

from __future__ import annotations

from collections.abc import Sequence

from mailout.adapters.supabase.rpc import Rpc
from mailout.letters.audience.segment_tree import Segment, Tree


class SupabaseSegments:
    """Fulfils the part of `Subscribers` that keeps segments."""

    rpc: Rpc

    def save_segment(self, segment: Segment) -> None:
        given = {name: getattr(segment, name) for name in ("name", "filter", "tree", "hash")}
        self.rpc("mailout_save_segment", {"given": given})

    def delete_segment(self, name: str) -> bool:
        return bool(self.rpc("mailout_delete_segment", {"name": name}))

    def audience_sample(self, list_key: str | None, segment: Tree | None, limit: int) -> Sequence[str]:
        params = {"list_key": list_key, "segment": segment, "most": limit}
        return list(self.rpc("mailout_audience_sample", params))
