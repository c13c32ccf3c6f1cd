"""What is written down on Supabase: contents, alerts, counts, history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.rpc import Rpc
from mailout.insight.alerts.port import KnownAlert
from mailout.insight.history.port import EVENTS_COME_FOR, LISTED, REFUSALS_KEPT, Act, spread
from mailout.insight.metrics.port import Sample
from mailout.letters.content.model import Content


class SupabaseRecords:
    """For `Contents`, `Alerts`, `Counts`, `History` and `Archives`."""

    rpc: Rpc

    def put_content(self, content: Content) -> str:
        return str(self.rpc("mailout_put_content", codec.content(content)))

    def claim_alert(self, known: KnownAlert) -> bool:
        return bool(self.rpc("mailout_claim_alert", {"key": known.key, "tries": known.tries}))

    def add_counts(self, counts: Mapping[Sample, float]) -> None:
        rows = [{"name": name, "labels": labels, "value": n} for (name, labels), n in counts.items()]
        self.rpc("mailout_add_counts", {"counts": rows})

    def sent_over_time(self, mailout_id: str, points: int = 60) -> Sequence[tuple[float, int]]:
        found = self.rpc("mailout_sent_over_time", {"id": mailout_id, "points": points})
        return spread(found["moments"], found["sent"] or 0)

    def keep_counts(self, day: str) -> None:
        params = {"day": day, "listed": LISTED, "events_come_for": EVENTS_COME_FOR}
        self.rpc("mailout_keep_counts", params)

    def write_act(self, act: Act) -> None:
        self.rpc("mailout_write_act", asdict(act))

    def keep_refusals(self, counts: Mapping[tuple[str, str], int]) -> None:
        rows = [{"path": path, "why": why, "n": n} for (path, why), n in counts.items()]
        self.rpc("mailout_keep_refusals", {"refused": rows, "most": REFUSALS_KEPT})

    def give_space_back(self) -> int:
        """Nothing to do: the database's own vacuum lets the next mailouts use what was freed."""
        return 0
