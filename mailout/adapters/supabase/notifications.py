"""Notes about a producer's rows, on Supabase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from mailout.adapters.supabase.rpc import Rpc
from mailout.kinds.notifications.port import Known, KnownMessage, NewNotification, Reported
from mailout.outbox.delivery.states import State


class SupabaseNotifications:
    """Fulfils `Notifications`."""

    rpc: Rpc

    def recall_notifications(self, keys: Sequence[str], *, requeue: bool) -> Mapping[str, Known]:
        rows = self.rpc("mailout_recall_notifications", {"keys": list(keys), "requeue": requeue})
        return {row["key"]: Known(row["requeues"], row["told_epoch"], KnownMessage.of(row)) for row in rows}

    def put_notifications(self, new: Sequence[NewNotification]) -> None:
        given = [{**asdict(one), "variables": dict(one.variables)} for one in new]
        self.rpc("mailout_put_notifications", {"given": given})

    def take_back_notifications(self, messages: Mapping[str, str]) -> Mapping[str, State]:
        states = self.rpc("mailout_take_back_notifications", {"messages": dict(messages)})
        return {id: State(state) for id, state in states.items()}

    def note_reported(self, reported: Sequence[Reported]) -> None:
        self.rpc("mailout_note_told", {"told": [asdict(one) for one in reported]})
