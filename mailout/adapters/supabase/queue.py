"""The queue on Supabase: mailouts, why they wait, who gets them; and requests from outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.rpc import Rpc
from mailout.base.errors import StoreError
from mailout.outbox.queue.mailout import WAITS_FOR_A_PERSON, DeferReason, Mailout, NewMailout
from mailout.outbox.queue.port import Freezing, Recipient, Request

_HELD = sorted(reason.value for reason in WAITS_FOR_A_PERSON)
_AUDIENCE_PART = 5_000


class SupabaseQueue:
    """Fulfils `Queue` and `Requests`."""

    rpc: Rpc

    def enqueue(self, new: NewMailout) -> Mailout:
        return codec.mailout(self.rpc("mailout_enqueue", {"mailout": asdict(new)}))

    def mailout(self, id: str) -> Mailout:
        return codec.mailout(self.rpc("mailout_mailout", {"id": id}))

    def start(self, id: str, worker: str) -> Mailout:
        return codec.mailout(self.rpc("mailout_start", {"id": id, "worker": worker}))

    def defer(self, id: str, reason: DeferReason, until: float | None, note: str | None = None) -> Mailout:
        if (until is None) != (reason in WAITS_FOR_A_PERSON):
            raise StoreError(f"A defer for {reason} {'has no' if until else 'needs a'} time.")
        params = {"id": id, "reason": reason.value, "until": until, "note": note, "held": _HELD}
        return codec.mailout(self.rpc("mailout_defer", params))

    def resume(self, id: str) -> Mailout:
        return codec.mailout(self.rpc("mailout_resume", {"id": id}))

    def release(self, id: str) -> Mailout:
        return codec.mailout(self.rpc("mailout_release", {"id": id}))

    def cancel(self, id: str) -> Mailout:
        """Cancelled with the first call; a long mailout is swept in parts."""
        mailout, pending = codec.mailout(self.rpc("mailout_cancel", {"id": id})), None
        while mailout.ledger.pending not in (0, pending):  # what stays is in a sender's hands just now
            pending = mailout.ledger.pending
            mailout = codec.mailout(self.rpc("mailout_cancel", {"id": id}))
        return mailout

    def discard_unbegun(self, id: str) -> bool:
        return bool(self.rpc("mailout_discard_unbegun", {"id": id}))

    def complete(self, id: str) -> Mailout:
        return codec.mailout(self.rpc("mailout_complete", {"id": id}))

    def set_public(self, id: str, public: bool) -> Mailout:
        return codec.mailout(self.rpc("mailout_set_public", {"id": id, "public": public}))

    def pause_all(self, paused: bool) -> None:
        self.rpc("mailout_pause_all", {"paused": paused})

    def set_content(self, id: str, content_hash: str, subject: str, *, replace: bool = False) -> Mailout:
        params = {"id": id, "content_id": content_hash, "subject": subject, "instead": replace}
        return codec.mailout(self.rpc("mailout_set_content", params))

    def freeze_subscribers(
        self, id: str, *, chunk: int = 20_000, attributes: Sequence[str] = ()
    ) -> int | None:
        """Inside the database: recipients do not travel."""
        params = {"id": id, "chunk": chunk, "attributes": list(attributes)}
        added: int | None = self.rpc("mailout_freeze_subscribers", params)
        return added

    def begin_freezing(self, id: str) -> Freezing | None:
        found = self.rpc("mailout_begin_freezing", {"id": id})
        return None if found is None else Freezing(found["cursor"], found["began"])

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


def _recipient(one: Recipient) -> dict[str, Any]:
    return {
        "email": one.email,
        "from_name": one.from_name,
        "content_id": one.content_hash,
        "variables": dict(one.variables) or None,
        "recipient_id": one.recipient_id,
    }
