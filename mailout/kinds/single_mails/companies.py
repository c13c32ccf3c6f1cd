"""Companies, their tokens and their recipients: who may hand in single mails, and to whom."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from mailout.base.ids import uuid_of
from mailout.base.select import Reads, View, every, first

PREFIX = "mo_"


class Scope(StrEnum):
    """What a token may do."""

    SEND = "send"
    READ = "read"


@dataclass(frozen=True, slots=True)
class Company:
    """Its name is its id. Limits of its own stand in the place of those for every company."""

    id: str
    limit_per_hour: int | None = None
    limit_per_day: int | None = None
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Token:
    """The token itself is shown once, and kept nowhere."""

    id: str  # its beginning: enough to name it, too little to use it
    company_id: str
    token_hash: str
    scopes: tuple[Scope, ...]
    limit_per_minute: int | None = None
    created_at: float = 0.0
    revoked_at: float | None = None


@dataclass(frozen=True, slots=True)
class KnownRecipient:
    """Somebody a company writes to, under the company's own name for them."""

    company_id: str
    id: str
    external_id: str | None
    email: str
    name: str | None = None
    deleted_at: float | None = None
    created_at: float | None = None
    updated_at: float | None = None


COMPANIES = View("read_companies", Company, ("id",))
TOKENS = View("read_tokens", Token, ("company_id", "id", "token_hash"))
RECIPIENTS = View("read_recipients", KnownRecipient, ("company_id", "id"))


class Companies(Reads, Protocol):
    def add_company(self, id: str) -> Company:
        """The one that is there, or a new one."""
        ...

    def set_company_limits(self, id: str, per_hour: int | None, per_day: int | None) -> Company:
        """None: those for every company. NotFound: there is no such company."""
        ...

    def add_token(self, token: Token) -> None:
        """Makes its company, if it is new."""
        ...

    def revoke_token(self, id: str) -> bool:
        """False: there is none, or it was revoked before."""
        ...

    def put_recipient(self, recipient: KnownRecipient) -> bool:
        """Make or change; whether it is new (one that was deleted counts as new)."""
        ...

    def delete_recipient(self, company: str, external_id: str) -> bool: ...


def companies(store: Reads) -> Sequence[Company]:
    return list(every(store, COMPANIES))


def token(store: Reads, token_hash: str) -> Token | None:
    """Also a revoked one."""
    return first(store, TOKENS, {"token_hash": token_hash})


def tokens(store: Reads) -> Sequence[Token]:
    return list(every(store, TOKENS))


def recipient(store: Reads, company: str, external_id: str) -> KnownRecipient | None:
    """None: there is none, or it was deleted."""
    return first(store, RECIPIENTS, {"company_id": company, "external_id": external_id})


def new_token(company: str, scopes: Sequence[Scope], limit_per_minute: int | None) -> tuple[str, Token]:
    """The text for its owner, and what is kept of it."""
    text = f"{PREFIX}{secrets.token_urlsafe(32)}"
    return text, Token(text[:11], company, hash_of(text), tuple(scopes), limit_per_minute)


def hash_of(token: str) -> str:
    """A token is long and random: a plain hash of it cannot be turned back."""
    return hashlib.sha256(token.encode()).hexdigest()


def recipient_id(company: str, external_id: str) -> str:
    return uuid_of("recipient", company, external_id)
