"""Mails without a mailout on Supabase: single mails, sign-ups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.rpc import Rpc
from mailout.insight.alerts.port import SIGN_UP_BRAKE
from mailout.kinds.single_mails.companies import recipient_id
from mailout.outbox.delivery.single_mails import Acceptance, SingleMail, Verdict
from mailout.outbox.delivery.states import State
from mailout.readers.port import LIMITS, Asked, SignUp

UNWRITTEN = ("content", "link", "values")
"""Parts of a mail that go to the store in another shape."""


class SupabaseSingleMails:
    """For `SingleMails` and `SignUps`."""

    rpc: Rpc

    def accept_single_mails(self, mails: Sequence[SingleMail]) -> Sequence[Acceptance]:
        verdicts = self.rpc("mailout_accept_single_mails", {"mails": [params(mail) for mail in mails]})
        return [
            Acceptance(
                Verdict(one["verdict"]),
                one["id"],
                State(one.get("state", State.PENDING)),
                one.get("request_id"),
            )
            for one in verdicts
        ]

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


def params(mail: SingleMail) -> dict[str, Any]:
    return {
        **{one.name: getattr(mail, one.name) for one in fields(mail) if one.name not in UNWRITTEN},
        "variables": mail.variables,
        **codec.content(mail.content),
        "headers": dict(mail.headers) if mail.headers else None,
        "new_recipient_id": recipient_id(mail.company_id, mail.external_id) if mail.external_id else None,
    }
