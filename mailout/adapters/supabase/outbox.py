"""The outbox on Supabase: sessions, `step`, and everything else that moves a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.rpc import Rpc
from mailout.base.errors import StoreError
from mailout.outbox.delivery.port import QUOTA_OVERLAP_SECONDS
from mailout.outbox.delivery.protocol import Step, StepReply
from mailout.outbox.delivery.single_mails import CANCELLED
from mailout.outbox.delivery.states import State

ROWS_PER_CALL = 10_000
"""How much one call moves or asks for: far within the database's time for a statement."""


class SupabaseOutbox:
    """Fulfils `Outbox`."""

    rpc: Rpc

    def open_session(self, mailout_id: str | None, *, worker: str, transport: str, lease: float) -> str:
        params = {"campaign_id": mailout_id, "worker": worker, "transport": transport, "lease": lease}
        return str(self.rpc("mailout_open_session", params))

    def step(self, step: Step) -> StepReply:
        return codec.step_reply(self.rpc("mailout_step", {"step": codec.step_params(step)}))

    def stop_machine(self, machine: str) -> int:
        return int(self.rpc("mailout_stop_machine", {"machine": machine}))

    def reap(self, grace: float) -> int:
        return int(self.rpc("mailout_reap", {"grace": grace}))

    def settle(
        self, mailout_id: str | None, to: State, *, wait: float, ids: Sequence[str] | None = None
    ) -> int:
        if to not in (State.SENT, State.FAILED, State.PENDING):
            raise StoreError(f"An unknown message can be settled as SENT, FAILED or PENDING, not {to}.")
        chosen = None if ids is None and mailout_id is not None else list(ids or ())
        params = {"campaign_id": mailout_id, "to_state": to.value, "wait": wait, "ids": chosen}
        if chosen is not None:
            return int(self.rpc("mailout_settle", {**params, "after": 0, "most": len(chosen)})["moved"])
        return self._in_parts("mailout_settle", params)

    def retry_failed(self, mailout_id: str | None, *, ids: Sequence[str] | None = None) -> int:
        if ids is None and mailout_id is not None:
            return self._in_parts("mailout_retry_failed", {"campaign_id": mailout_id})
        chosen = list(ids or ())
        params = {"campaign_id": mailout_id, "after": 0, "most": len(chosen), "ids": chosen}
        return int(self.rpc("mailout_retry_failed", params)["moved"])

    def cancel_single_mails(self, ids: Sequence[str], why: str = CANCELLED) -> int:
        return int(self.rpc("mailout_cancel_single_mails", {"ids": list(ids), "why": why}))

    def _in_parts(self, name: str, params: Mapping[str, Any]) -> int:
        """A transaction for each part, by `seq`: asked again, it goes on where it was stopped."""
        moved: int = 0
        last: int | None = 0
        while last is not None:
            part = self.rpc(name, {**params, "after": last, "most": ROWS_PER_CALL})
            moved, last = moved + part["moved"], part["last"]
        return moved

    def set_quota(
        self, scope: str, available: int | None, asked_at: float, *, most: int | None = None
    ) -> None:
        since = asked_at - QUOTA_OVERLAP_SECONDS
        params = {"scope": scope, "available": available, "asked_at": since, "most": most}
        self.rpc("mailout_set_quota", params)
