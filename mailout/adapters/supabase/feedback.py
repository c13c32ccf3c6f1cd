"""Feedback on Supabase: what events come to, written out for SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mailout.adapters.supabase.rpc import Rpc
from mailout.outbox.feedback.port import UNDO_SECONDS, Applied, Effect, EventReading
from mailout.outbox.feedback.subscriber_state import SOFT_BOUNCES


class SupabaseFeedback:
    """For `Feedback`."""

    rpc: Rpc

    def apply_events(self, readings: Sequence[EventReading]) -> Applied:
        params = {"readings": [_reading(reading) for reading in readings], "soft_bounces": SOFT_BOUNCES}
        return Applied(**self.rpc("mailout_apply_events", params))

    def undo_unsubscribe(self, email_norm: str, list_key: str | None) -> bool:
        params = {"address": email_norm, "list_key": list_key, "within": UNDO_SECONDS}
        return bool(self.rpc("mailout_undo_unsubscribe", params))


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
