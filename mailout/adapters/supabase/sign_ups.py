"""Sign-ups on Supabase."""

from __future__ import annotations

from dataclasses import asdict

from mailout.adapters.supabase.rpc import Rpc
from mailout.adapters.supabase.single_mails import params
from mailout.insight.alerts.port import SIGN_UP_BRAKE
from mailout.readers.port import LIMITS, Asked, Confirmation, Confirmed, SignUp


class SupabaseSignUps:
    """Fulfils `SignUps`."""

    rpc: Rpc

    def ask_sign_up(self, asked: SignUp) -> Asked:
        given = {
            "mail": params(asked.mail),
            "network": asked.network,
            "lists": list(asked.lists),
            "day": asked.day,
            "limits": [asdict(limit) for limit in LIMITS],
            "brake_note": SIGN_UP_BRAKE,
        }
        return Asked(self.rpc("mailout_ask_sign_up", given))

    def confirm_sign_up(self, confirmation: Confirmation) -> Confirmed:
        given = asdict(confirmation) | {"lists": list(confirmation.lists)}
        return Confirmed(self.rpc("mailout_confirm_sign_up", {"given": given}))

    def erase_sign_ups(self, before: float, most: int) -> int:
        return int(self.rpc("mailout_erase_sign_ups", {"before": before, "most": most}))
