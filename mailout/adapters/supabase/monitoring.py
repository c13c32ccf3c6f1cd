"""What is watched, on Supabase: alerts, and what Prometheus gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mailout.adapters.supabase.rpc import Rpc
from mailout.insight.alerts.port import Known, Signs
from mailout.insight.metrics.port import Sample, Vitals
from mailout.outbox.delivery.pacing import PaceState


class SupabaseMonitoring:
    """Fulfils `Alerts` and `Counts`."""

    rpc: Rpc

    def alert_signs(self, scope: str) -> Signs:
        signs = dict(self.rpc("mailout_alert_signs", {"scope": scope}))
        return Signs(holding=frozenset(signs.pop("holding")), **signs)

    def alerts_hold(self, keys: Sequence[str], seen_at: float) -> Sequence[Known]:
        rows = self.rpc("mailout_alerts_hold", {"keys": list(keys), "seen_at": seen_at})
        return [Known(**row) for row in rows]

    def claim_alert(self, known: Known) -> bool:
        return bool(self.rpc("mailout_claim_alert", {"key": known.key, "tries": known.tries}))

    def alert_sent(self, key: str) -> None:
        self.rpc("mailout_alert_told", {"key": key})

    def add_counts(self, counts: Mapping[Sample, float]) -> None:
        rows = [{"name": name, "labels": labels, "value": n} for (name, labels), n in counts.items()]
        self.rpc("mailout_add_counts", {"counts": rows})

    def counts(self) -> Mapping[Sample, float]:
        rows = self.rpc("mailout_counts", {})
        return {(row["name"], row["labels"]): float(row["value"]) for row in rows}

    def vitals(self, scope: str) -> Vitals:
        found = self.rpc("mailout_vitals", {"scope": scope})
        return Vitals(**found | {"pace": PaceState(*found["pace"]) if found["pace"] else PaceState()})
