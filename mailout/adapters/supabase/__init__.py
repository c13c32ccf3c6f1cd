"""The production store, Supabase: what happens is in SQL (supabase/migrations), here is the way there."""

from __future__ import annotations

from collections.abc import Iterator

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.archive import SupabaseArchives
from mailout.adapters.supabase.articles import SupabaseArticles
from mailout.adapters.supabase.client import SupabaseRpc
from mailout.adapters.supabase.feedback import SupabaseFeedback
from mailout.adapters.supabase.outbox import SupabaseOutbox
from mailout.adapters.supabase.queue import SupabaseQueue
from mailout.adapters.supabase.records import SupabaseRecords
from mailout.adapters.supabase.rpc import Rpc, check_version
from mailout.adapters.supabase.segments import SupabaseSegments
from mailout.adapters.supabase.select import SupabaseReads
from mailout.adapters.supabase.sign_ups import SupabaseSignUps
from mailout.adapters.supabase.single_mails import SupabaseSingleMails
from mailout.adapters.supabase.subscribers import SupabaseSubscribers
from mailout.insight.doctor.checks import Check


class SupabaseStore(
    SupabaseReads,
    SupabaseOutbox,
    SupabaseQueue,
    SupabaseSubscribers,
    SupabaseSegments,
    SupabaseRecords,
    SupabaseFeedback,
    SupabaseArchives,
    SupabaseArticles,
    SupabaseSingleMails,
    SupabaseSignUps,
):
    """Fulfils `mailout.store.Store`. Its time is the database's."""

    name = "supabase"

    def __init__(self, rpc: Rpc) -> None:
        self.rpc = rpc

    @classmethod
    def connect(cls, url: str, key: str) -> SupabaseStore:
        return cls(SupabaseRpc(url, key))

    def now(self) -> float:
        return codec.seconds(self.rpc("mailout_now", {}))

    def check(self) -> int:
        version = self.rpc("mailout_schema_version", {})
        check_version(version)
        return int(version)

    def examine(self) -> Iterator[Check]:
        doors = self.rpc("mailout_examine", {})
        if doors:
            yield Check(
                "publishable key",
                "warn",
                f"it stands in web pages, and opens: {', '.join(doors)}",
                "Take these rights from anon and authenticated, or drop the policies that give them.",
            )
        else:
            yield Check("publishable key", "ok", "it can neither read nor write nor call")

    def close(self) -> None:
        self.rpc.close()
