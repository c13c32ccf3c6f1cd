"""Old mailouts on their way out of Supabase."""

from __future__ import annotations

from collections.abc import Sequence

from mailout.adapters.supabase.rpc import Rpc


class SupabaseArchives:
    """Fulfils `Archives`."""

    rpc: Rpc

    def archive_state(self, id: str) -> str | None:
        state: str | None = self.rpc("mailout_archive_state", {"id": id})
        return state

    def mark_archived(self, id: str, as_it_was: str, place: str) -> bool:
        params = {"id": id, "as_it_was": as_it_was, "place": place}
        return bool(self.rpc("mailout_mark_archived", params))

    def delete_archived_events(self, id: str, ids: Sequence[str]) -> int:
        return int(self.rpc("mailout_delete_archived_events", {"id": id, "ids": list(ids)}))

    def delete_archived_messages(self, id: str, *, most: int = 10_000) -> int:
        return int(self.rpc("mailout_delete_archived_messages", {"id": id, "most": most}))

    def trim_inbox(self, before: float, *, most: int = 10_000) -> int:
        return int(self.rpc("mailout_trim_inbox", {"before": before, "most": most}))

    def give_space_back(self) -> int:
        """Nothing to do: the database's own vacuum lets the next mailouts use what was freed."""
        return 0
