"""Feedback on Supabase: events and people who leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mailout.adapters.supabase.rpc import Rpc
from mailout.outbox.feedback.port import (
    UNDO_SECONDS,
    Applied,
    Effect,
    EventReading,
    Forgotten,
    Received,
    StatusChange,
)
from mailout.outbox.feedback.subscriber_state import SOFT_BOUNCES


class SupabaseFeedback:
    """Fulfils `Feedback`."""

    rpc: Rpc

    def receive_events(self, received: Sequence[Received]) -> int:
        return int(self.rpc("mailout_receive_events", {"received": [asdict(one) for one in received]}))

    def apply_events(self, readings: Sequence[EventReading]) -> Applied:
        params = {"readings": [_reading(reading) for reading in readings], "soft_bounces": SOFT_BOUNCES}
        return Applied(**self.rpc("mailout_apply_events", params))

    def change_statuses(self, changes: Mapping[str, StatusChange]) -> int:
        return int(
            self.rpc(
                "mailout_change_statuses", {"news": {email: asdict(one) for email, one in changes.items()}}
            )
        )

    def unsubscribe(self, email_norm: str, list_key: str | None, message_id: str | None = None) -> bool:
        params = {"address": email_norm, "list_key": list_key, "message_id": message_id}
        return bool(self.rpc("mailout_unsubscribe", params))

    def unsubscribe_by_hand(self, email_norm: str, list_key: str | None) -> bool:
        return bool(self.rpc("mailout_unsubscribe_by_hand", {"address": email_norm, "list_key": list_key}))

    def undo_unsubscribe(self, email_norm: str, list_key: str | None) -> bool:
        params = {"address": email_norm, "list_key": list_key, "within": UNDO_SECONDS}
        return bool(self.rpc("mailout_undo_unsubscribe", params))

    def resubscribe(self, email_norm: str, list_key: str | None) -> bool:
        return bool(self.rpc("mailout_resubscribe", {"address": email_norm, "list_key": list_key}))

    def forget(self, email_norm: str, instead: str) -> Forgotten:
        done = self.rpc("mailout_forget", {"address": email_norm, "instead": instead})
        return Forgotten(**{**done, "mailouts": tuple(sorted(done["mailouts"]))})


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
