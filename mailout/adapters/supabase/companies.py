"""Companies, tokens and recipients on Supabase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.rpc import Rpc
from mailout.base.errors import NotFound
from mailout.kinds.single_mails.companies import Company, KnownRecipient, Scope, Token


class SupabaseCompanies:
    """Fulfils `Companies`."""

    rpc: Rpc

    def add_company(self, id: str) -> Company:
        return Company(**codec.row(self.rpc("mailout_add_company", {"id": id})))

    def companies(self) -> Sequence[Company]:
        return [Company(**codec.row(row)) for row in self.rpc("mailout_companies", {})]

    def set_company_limits(self, id: str, per_hour: int | None, per_day: int | None) -> Company:
        params = {"id": id, "per_hour": per_hour, "per_day": per_day}
        row = self.rpc("mailout_set_company_limits", params)
        if row is None:
            raise NotFound(f"There is no company {id}.", remedy="`mailout companies list` shows them.")
        return Company(**codec.row(row))

    def add_token(self, token: Token) -> None:
        self.rpc("mailout_add_token", {"token": asdict(token) | {"scopes": ",".join(token.scopes)}})

    def token(self, token_hash: str) -> Token | None:
        row = self.rpc("mailout_token", {"token_hash": token_hash})
        return _token(row) if row else None

    def tokens(self) -> Sequence[Token]:
        return [_token(row) for row in self.rpc("mailout_tokens", {})]

    def revoke_token(self, id: str) -> bool:
        return bool(self.rpc("mailout_revoke_token", {"id": id}))

    def put_recipient(self, recipient: KnownRecipient) -> bool:
        return bool(self.rpc("mailout_put_recipient", {"recipient": asdict(recipient)}))

    def recipient(self, company: str, external_id: str) -> KnownRecipient | None:
        row = self.rpc("mailout_recipient", {"company": company, "external_id": external_id})
        return None if row is None else KnownRecipient(**_known(row, KnownRecipient))

    def delete_recipient(self, company: str, external_id: str) -> bool:
        params = {"company": company, "external_id": external_id}
        return bool(self.rpc("mailout_delete_recipient", params))


def _token(values: Mapping[str, Any]) -> Token:
    known = _known(values, Token)
    return Token(**known | {"scopes": tuple(Scope(scope) for scope in known["scopes"].split(","))})


def _known(values: Mapping[str, Any], shape: type) -> dict[str, Any]:
    row = codec.row(values)
    return {one.name: row[one.name] for one in fields(shape)}
