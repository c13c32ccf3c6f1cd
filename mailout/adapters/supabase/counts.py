"""What Prometheus gets, on Supabase."""

from __future__ import annotations

from collections.abc import Mapping

from mailout.adapters.supabase.rpc import Rpc
from mailout.delivery.pacing import PaceState
from mailout.metrics.port import Sample, Vitals


class SupabaseCounts:
    """Fulfils `Counts`."""

    rpc: Rpc

    def add_counts(self, counts: Mapping[Sample, float]) -> None:
        rows = [{"name": name, "labels": labels, "value": n} for (name, labels), n in counts.items()]
        self.rpc("mailout_add_counts", {"counts": rows})

    def counts(self) -> Mapping[Sample, float]:
        rows = self.rpc("mailout_counts", {})
        return {(row["name"], row["labels"]): float(row["value"]) for row in rows}

    def vitals(self, scope: str) -> Vitals:
        found = self.rpc("mailout_vitals", {"scope": scope})
        return Vitals(**found | {"pace": PaceState(*found["pace"]) if found["pace"] else PaceState()})
