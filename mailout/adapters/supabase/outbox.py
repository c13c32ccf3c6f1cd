"""The outbox on Supabase: `step`, what moves many rows in parts, and rules that SQL is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.rpc import Rpc
from mailout.base.errors import StoreError
from mailout.outbox.delivery.port import QUOTA_OVERLAP_SECONDS
from mailout.outbox.delivery.protocol import Step, StepReply
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback.port import Applied, Effect, EventReading
from mailout.outbox.feedback.subscriber_state import SOFT_BOUNCES
from mailout.outbox.queue.mailout import WAITS_FOR_A_PERSON, DeferReason, Mailout
from mailout.outbox.queue.port import Recipient, Request

ROWS_PER_CALL = 10_000
"""How much one call moves or asks for: far within the database's time for a statement."""
_HELD = sorted(reason.value for reason in WAITS_FOR_A_PERSON)
_AUDIENCE_PART = 5_000


class SupabaseOutbox:
    """For `Outbox`, `Queue`, `Requests` and `Feedback`."""

    rpc: Rpc

    def step(self, step: Step) -> StepReply:
        return codec.step_reply(self.rpc("mailout_step", {"step": codec.step_params(step)}))

    def settle(
        self, mailout_id: str | None, to: State, *, wait: float, ids: Sequence[str] | None = None
    ) -> int:
        if to not in (State.SENT, State.FAILED, State.PENDING):
            raise StoreError(f"An unknown message can be settled as SENT, FAILED or PENDING, not {to}.")
        return self._moved("mailout_settle", mailout_id, ids, {"to_state": to.value, "wait": wait})

    def retry_failed(self, mailout_id: str | None, *, ids: Sequence[str] | None = None) -> int:
        return self._moved("mailout_retry_failed", mailout_id, ids, {})

    def _moved(
        self, name: str, mailout_id: str | None, ids: Sequence[str] | None, params: Mapping[str, Any]
    ) -> int:
        """These at once. All of a mailout: a transaction for each part, by `seq`; asked again, it goes on
        where it was stopped."""
        asked = {**params, "campaign_id": mailout_id}
        if ids is not None or mailout_id is None:
            chosen = list(ids or ())
            return int(self.rpc(name, {**asked, "ids": chosen, "after": 0, "most": len(chosen)})["moved"])
        moved: int = 0
        last: int | None = 0
        while last is not None:
            part = self.rpc(name, {**asked, "ids": None, "after": last, "most": ROWS_PER_CALL})
            moved, last = moved + part["moved"], part["last"]
        return moved

    def set_quota(
        self, scope: str, available: int | None, asked_at: float, *, most: int | None = None
    ) -> None:
        since = asked_at - QUOTA_OVERLAP_SECONDS
        params = {"scope": scope, "available": available, "asked_at": since, "most": most}
        self.rpc("mailout_set_quota", params)

    def defer(self, id: str, reason: DeferReason, until: float | None, note: str | None = None) -> Mailout:
        if (until is None) != (reason in WAITS_FOR_A_PERSON):
            raise StoreError(f"A defer for {reason} {'has no' if until else 'needs a'} time.")
        params = {"id": id, "reason": reason.value, "until": until, "note": note, "held": _HELD}
        return codec.mailout(self.rpc("mailout_defer", params))

    def cancel(self, id: str) -> Mailout:
        """Cancelled with the first call; a long mailout is swept in parts."""
        mailout, pending = codec.mailout(self.rpc("mailout_cancel", {"id": id})), None
        while mailout.ledger.pending not in (0, pending):  # what stays is in a sender's hands just now
            pending = mailout.ledger.pending
            mailout = codec.mailout(self.rpc("mailout_cancel", {"id": id}))
        return mailout

    def freeze_recipients(self, id: str, recipients: Sequence[Recipient], up_to: str | None = None) -> int:
        audience = [_recipient(one) for one in sorted(recipients, key=lambda one: one.email)]
        added = 0
        for start in range(0, max(1, len(audience)), _AUDIENCE_PART):
            part = audience[start : start + _AUDIENCE_PART]
            is_last = start + _AUDIENCE_PART >= len(audience)
            params = {"id": id, "audience": part, "up_to": up_to if is_last else part[-1]["email"]}
            added += self.rpc("mailout_freeze_recipients", params)
        return added

    def ask(self, request: Request, *, repeat: float) -> bool:
        params = {"ref": request.ref, "how": request.how.value, "repeat_after": repeat}
        return bool(self.rpc("mailout_ask", params | {"not_before": request.not_before}))

    def answered(self, request: Request) -> bool:
        return bool(self.rpc("mailout_answered", {"ref": request.ref, "how": request.how.value}))

    def apply_events(self, readings: Sequence[EventReading]) -> Applied:
        params = {"readings": [_reading(reading) for reading in readings], "soft_bounces": SOFT_BOUNCES}
        return Applied(**self.rpc("mailout_apply_events", params))


def _recipient(one: Recipient) -> dict[str, Any]:
    return {
        "email": one.email,
        "from_name": one.from_name,
        "content_id": one.content_hash,
        "variables": dict(one.variables) or None,
        "recipient_id": one.recipient_id,
    }


def _reading(reading: EventReading) -> dict[str, Any]:
    code, message = reading.problem or (None, None)
    return {
        "inbox_id": reading.inbox_id,
        "code": code,
        "message": message,
        "dead": reading.dead,
        "effects": [_effect(effect) for effect in reading.effects],
    }


def _effect(effect: Effect) -> dict[str, Any]:
    """Flat, with what our tables say of its type: the SQL need not know the words."""
    revoke_code, revoke_message = effect.revokes or (None, None)
    return {
        "id": effect.id,
        "type": effect.type.value,
        "at": effect.at,
        "email": effect.email,
        "ses_message_id": effect.provider_message_id,
        "attempt_id": effect.attempt.id if effect.attempt else None,
        "attempt_epoch": effect.attempt.epoch if effect.attempt else None,
        "campaign_id": effect.mailout_id,
        "heard": asdict(effect.change) if effect.change else None,
        "detail": dict(effect.detail),
        "recount": effect.recount,
        "metric": effect.metric,
        "revoke_code": revoke_code,
        "revoke_message": revoke_message,
    }
