"""Companies, their tokens and their recipients: who may hand in single mails, and to whom."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol, TypedDict

from mailout.base.errors import NotFound
from mailout.base.ids import uuid_of
from mailout.base.select import Reads, Table, View, Writes, every, first
from mailout.base.time_format import spoken
from mailout.insight.reporting.phrases import ALL_PAUSED
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.protocol import Halt
from mailout.outbox.delivery.single_mails import OURS
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.limits import Limits, buckets

PREFIX = "mo_"
LARGEST_LIMIT = 2**31 - 1
"""Mails; Postgres keeps no larger one."""


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


class _TokenRow(TypedDict):
    id: str
    company_id: str
    token_hash: str
    scopes: str
    limit_per_minute: int | None


COMPANIES = View("read_companies", Company, ("id",))
TOKENS = View("read_tokens", Token, ("company_id", "id", "token_hash"))
RECIPIENTS = View("read_recipients", KnownRecipient, ("company_id", "id"))
NEW_COMPANY_TABLE = Table("companies", Company, ("id", "created_at"), at="created_at", key=("id",), once=True)
COMPANY_TABLE = Table(
    "companies",
    Company,
    ("id", "limit_per_hour", "limit_per_day", "created_at"),
    at="created_at",
    key=("id",),
)
TOKEN_TABLE = Table(
    "api_tokens",
    _TokenRow,
    ("id", "company_id", "token_hash", "scopes", "limit_per_minute", "created_at"),
    at="created_at",
)


class Companies(Writes, Protocol):
    def revoke_token(self, id: str) -> bool:
        """False: there is none, or it was revoked before."""

    def put_recipient(self, recipient: KnownRecipient) -> bool:
        """Make or change; whether it is new (one that was deleted counts as new)."""

    def delete_recipient(self, company: str, external_id: str) -> bool: ...


def companies(store: Reads) -> Sequence[Company]:
    return list(every(store, COMPANIES))


def company(store: Reads, id: str) -> Company:
    found = first(store, COMPANIES, {"id": id})
    if found is None:
        raise NotFound(f"There is no company {id}.", remedy="`mailout companies list` shows them.")
    return found


def add_company(store: Companies, id: str) -> Company:
    """The one that is there, or a new one."""
    store.put(NEW_COMPANY_TABLE, [Company(id)])
    return company(store, id)


def set_limits(store: Companies, id: str, per_hour: int | None, per_day: int | None) -> Company:
    """None: those for every company. NotFound: there is no such company."""
    limited = replace(company(store, id), limit_per_hour=per_hour, limit_per_day=per_day)
    store.put(COMPANY_TABLE, [limited])
    return limited


def used_up(
    store: Reads, company: Company, limits: Limits, now: float, *, rehearsal: bool
) -> tuple[str, str] | None:
    """Which limit of its own holds up its single mails now: hour or day, and a sentence. No run is held up
    by it, since others' mails leave: so none notes it."""
    own = {"hour": company.limit_per_hour, "day": company.limit_per_day}
    for bucket in buckets(limits, now, rehearsal=rehearsal):
        limit, kind = own[bucket.kind], bucket.kind
        if limit is None or not bucket.starts_at <= now < bucket.ends_at:
            continue
        if outbox_rows.usage(store, company.id, kind, bucket.key) >= limit:
            until = spoken(bucket.ends_at, limits.timezone)
            return (
                kind,
                f"{company.id} has used up its limit of this {kind} ({limit:,}); it goes on at {until}.",
            )
    return None


def why_they_wait(
    store: Reads, company: str, limits: Limits, now: float, *, rehearsal: bool
) -> tuple[str, str] | None:
    """A code and a sentence, if everything is paused or the company's own limit is used up."""
    if company != OURS and queue_rows.all_paused(store):
        return Halt.ALL_PAUSED.value, ALL_PAUSED
    known = first(store, COMPANIES, {"id": company})
    return used_up(store, known, limits, now, rehearsal=rehearsal) if known else None


def add_token(store: Companies, token: Token) -> None:
    """Makes its company, if it is new."""
    add_company(store, token.company_id)
    row: _TokenRow = {
        "id": token.id,
        "company_id": token.company_id,
        "token_hash": token.token_hash,
        "scopes": ",".join(token.scopes),
        "limit_per_minute": token.limit_per_minute,
    }
    store.put(TOKEN_TABLE, [row])


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
