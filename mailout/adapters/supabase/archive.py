"""Old mailouts on their way out of Supabase."""

from __future__ import annotations

from collections.abc import Sequence

from mailout.adapters.supabase.rpc import Rpc


class SupabaseArchives:
    """Fulfils `Archives`."""

    rpc: Rpc

    def claim_archive(self, id: str, *, owner: str, token: str, lease: float) -> bool:
        params = {"id": id, "owner": owner, "token": token, "lease": lease}
        return bool(self.rpc("mailout_claim_archive", params))

    def keep_claim(self, id: str, token: str, lease: float) -> bool:
        return bool(self.rpc("mailout_keep_claim", {"id": id, "token": token, "lease": lease}))

    def drop_claim(self, id: str, token: str) -> None:
        self.rpc("mailout_drop_claim", {"id": id, "token": token})

    def mark_archived(self, id: str, token: str, place: str) -> bool:
        return bool(self.rpc("mailout_mark_archived", {"id": id, "token": token, "place": place}))

    def delete_archived_events(self, id: str, ids: Sequence[str]) -> int:
        return int(self.rpc("mailout_delete_archived_events", {"id": id, "ids": list(ids)}))

    def delete_archived_messages(self, id: str, *, most: int = 10_000) -> int:
        return int(self.rpc("mailout_delete_archived_messages", {"id": id, "most": most}))

    def trim_inbox(self, before: float, *, most: int = 10_000) -> int:
        return int(self.rpc("mailout_trim_inbox", {"before": before, "most": most}))

    def give_space_back(self) -> int:
        """Nothing to do: the database's own vacuum lets the next mailouts use what was freed."""
        return 0
