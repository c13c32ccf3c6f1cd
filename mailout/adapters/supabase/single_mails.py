"""Mails without a mailout on Supabase: companies, single mails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.rpc import Rpc
from mailout.base.errors import NotFound
from mailout.kinds.single_mails.companies import Company, KnownRecipient, Token, recipient_id
from mailout.outbox.delivery.single_mails import (
    Acceptance,
    SingleMail,
    SingleMailsHeld,
    SingleMailsWaiting,
    Verdict,
)
from mailout.outbox.delivery.states import State

UNWRITTEN = ("content", "link", "values")
"""Parts of a mail that go to the store in another shape."""


class SupabaseSingleMails:
    """Fulfils `SingleMails` and `Companies`."""

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

    def single_mails_waiting(self, *, rehearsal: bool) -> SingleMailsWaiting:
        told = self.rpc("mailout_single_mails_waiting", {"rehearsal": rehearsal})
        held = SingleMailsHeld(**told["held"]) if told["held"] else None
        return SingleMailsWaiting(**told | {"held": held})

    def hold_single_mails(self, held: SingleMailsHeld | None, *, rehearsal: bool) -> None:
        params = {"held": asdict(held) if held else None, "rehearsal": rehearsal}
        self.rpc("mailout_hold_single_mails", params)

    def has_single_mails(self, session: str) -> bool:
        return bool(self.rpc("mailout_has_single_mails", {"session": session}))

    def add_company(self, id: str) -> Company:
        return Company(**codec.row(self.rpc("mailout_add_company", {"id": id})))

    def set_company_limits(self, id: str, per_hour: int | None, per_day: int | None) -> Company:
        params = {"id": id, "per_hour": per_hour, "per_day": per_day}
        row = self.rpc("mailout_set_company_limits", params)
        if row is None:
            raise NotFound(f"There is no company {id}.", remedy="`mailout companies list` shows them.")
        return Company(**codec.row(row))

    def add_token(self, token: Token) -> None:
        self.rpc("mailout_add_token", {"token": asdict(token) | {"scopes": ",".join(token.scopes)}})

    def revoke_token(self, id: str) -> bool:
        return bool(self.rpc("mailout_revoke_token", {"id": id}))

    def put_recipient(self, recipient: KnownRecipient) -> bool:
        return bool(self.rpc("mailout_put_recipient", {"recipient": asdict(recipient)}))

    def delete_recipient(self, company: str, external_id: str) -> bool:
        params = {"company": company, "external_id": external_id}
        return bool(self.rpc("mailout_delete_recipient", params))


def params(mail: SingleMail) -> dict[str, Any]:
    content = mail.content
    return {
        **{one.name: getattr(mail, one.name) for one in fields(mail) if one.name not in UNWRITTEN},
        "variables": mail.variables,
        "hash": content.hash,
        "subject": content.subject,
        "html": content.html,
        "plain": content.text,
        "headers": dict(mail.headers) if mail.headers else None,
        "new_recipient_id": recipient_id(mail.company_id, mail.external_id) if mail.external_id else None,
    }
