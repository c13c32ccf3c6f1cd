"""The production store, Supabase: what happens is in SQL (supabase/migrations), here is the way there."""

from __future__ import annotations

from collections.abc import Iterator

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.acts import pass_on
from mailout.adapters.supabase.client import SupabaseRpc
from mailout.adapters.supabase.outbox import SupabaseOutbox
from mailout.adapters.supabase.records import SupabaseRecords
from mailout.adapters.supabase.rpc import Rpc, check_version
from mailout.adapters.supabase.select import SupabaseReads
from mailout.adapters.supabase.single_mails import SupabaseSingleMails
from mailout.adapters.supabase.subscribers import SupabaseSubscribers
from mailout.insight.doctor.checks import Check
from mailout.store import Store


@pass_on
class SupabaseStore(
    SupabaseReads,
    SupabaseOutbox,
    SupabaseSubscribers,
    SupabaseRecords,
    SupabaseSingleMails,
    Store,
):
    """Its time is the database's. Acts that the other classes do not write out are passed on as they are."""

    name = "supabase"

    def __init__(self, rpc: Rpc) -> None:
        self.rpc = rpc

    @classmethod
    def over(cls, rpc: Rpc) -> SupabaseStore:
        return cls(rpc)

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
