"""Alerts on Supabase."""

from __future__ import annotations

from collections.abc import Sequence

from mailout.adapters.supabase.rpc import Rpc
from mailout.alerts.model import Known, Signs


class SupabaseAlerts:
    """Fulfils `Alerts`."""

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
