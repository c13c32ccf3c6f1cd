"""Mails without a mailout on Supabase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.rpc import Rpc
from mailout.kinds.single_mails.companies import recipient_id
from mailout.outbox.delivery.single_mails import Acceptance, SingleMail, SingleMailsWaiting, Verdict
from mailout.outbox.delivery.states import State


class SupabaseSingleMails:
    """Fulfils `SingleMails`."""

    rpc: Rpc

    def accept_single_mails(self, mails: Sequence[SingleMail]) -> Sequence[Acceptance]:
        verdicts = self.rpc("mailout_accept_single_mails", {"mails": [_params(mail) for mail in mails]})
        return [
            Acceptance(
                Verdict(one["verdict"]),
                one["id"],
                State(one.get("state", State.PENDING)),
                one.get("request_id"),
            )
            for one in verdicts
        ]

    def single_mail(self, company: str, id: str) -> Mapping[str, Any] | None:
        found = self.rpc("mailout_single_mail", {"company": company, "id": id})
        return codec.row(found) if found else None

    def find_messages(self, id: str) -> Sequence[str]:
        return list(self.rpc("mailout_find_messages", {"id": id}))

    def single_mails_waiting(self, *, rehearsal: bool) -> SingleMailsWaiting:
        return SingleMailsWaiting(**self.rpc("mailout_single_mails_waiting", {"rehearsal": rehearsal}))

    def has_single_mails(self, session: str) -> bool:
        return bool(self.rpc("mailout_has_single_mails", {"session": session}))


def _params(mail: SingleMail) -> dict[str, Any]:
    content = mail.content
    return {
        **{one.name: getattr(mail, one.name) for one in fields(mail) if one.name != "content"},
        "hash": content.hash,
        "subject": content.subject,
        "html": content.html,
        "plain": content.text,
        "headers": dict(mail.headers) if mail.headers else None,
        "new_recipient_id": recipient_id(mail.company_id, mail.external_id) if mail.external_id else None,
    }
