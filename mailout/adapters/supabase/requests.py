"""Requests from outside, on Supabase."""

from __future__ import annotations

from collections.abc import Sequence

from mailout.adapters.supabase.rpc import Rpc
from mailout.queue.port import Request, RequestKind


class SupabaseRequests:
    """Fulfils `Requests`."""

    rpc: Rpc

    def ask(self, request: Request, *, repeat: float) -> bool:
        params = {"ref": request.ref, "how": request.how.value, "repeat_after": repeat}
        return bool(self.rpc("mailout_ask", params))

    def asked(self, waiting: float) -> Sequence[Request]:
        rows = self.rpc("mailout_asked", {"waiting": waiting})
        return [Request(row["ref"], RequestKind(row["how"])) for row in rows]

    def answered(self, request: Request) -> None:
        self.rpc("mailout_answered", {"ref": request.ref, "how": request.how.value})
