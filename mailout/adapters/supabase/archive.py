"""Old mailouts on their way out of Supabase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.rpc import Rpc
from mailout.outbox.queue.mailout import Mailout


class SupabaseArchives:
    """Fulfils `Archives`."""

    rpc: Rpc

    def over_before(self, moment: float) -> Sequence[Mailout]:
        return [codec.mailout(row) for row in self.rpc("mailout_over_before", {"moment": moment})]

    def claim_archive(self, id: str, *, owner: str, token: str, lease: float) -> bool:
        params = {"id": id, "owner": owner, "token": token, "lease": lease}
        return bool(self.rpc("mailout_claim_archive", params))

    def keep_claim(self, id: str, token: str, lease: float) -> bool:
        return bool(self.rpc("mailout_keep_claim", {"id": id, "token": token, "lease": lease}))

    def drop_claim(self, id: str, token: str) -> None:
        self.rpc("mailout_drop_claims", {"id": id, "token": token})

    def mark_archived(self, id: str, token: str, place: str) -> bool:
        return bool(self.rpc("mailout_mark_archived", {"id": id, "token": token, "place": place}))

    def archives_to_empty(self) -> Sequence[tuple[Mailout, str]]:
        rows = self.rpc("mailout_archives_to_empty", {})
        return [(codec.mailout(row["mailout"]), row["token"]) for row in rows]

    def transports(self, id: str) -> Mapping[str, str]:
        return dict(self.rpc("mailout_transports", {"id": id}))

    def session_archived(self, session: str) -> bool:
        return bool(self.rpc("mailout_session_archived", {"session": session}))

    def events_of(
        self, message_ids: Sequence[str], *, after: str = "", limit: int = 10_000
    ) -> Sequence[Mapping[str, Any]]:
        params = {"messages": list(message_ids), "after": after, "most": limit}
        return [codec.row(values) for values in self.rpc("mailout_events_of", params)]

    def delete_archived_events(self, id: str, ids: Sequence[str]) -> int:
        return int(self.rpc("mailout_delete_archived_events", {"id": id, "ids": list(ids)}))

    def delete_archived_messages(self, id: str, *, most: int = 10_000) -> int:
        return int(self.rpc("mailout_delete_archived_messages", {"id": id, "most": most}))

    def archive_emptied(self, id: str) -> None:
        self.rpc("mailout_archive_emptied", {"id": id})

    def trim_inbox(self, before: float, *, most: int = 10_000) -> int:
        return int(self.rpc("mailout_trim_inbox", {"before": before, "most": most}))

    def give_space_back(self) -> int:
        """Nothing to do: the database's own vacuum lets the next mailouts use what was freed."""
        return 0
