"""Who calls the API: a company, by its token; and how often it may."""

from __future__ import annotations

import hmac
import time
from dataclasses import dataclass
from math import ceil

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from gateway.access import WrongTokens
from gateway.api.problems import ApiProblem, request_id_of
from mailout.kinds.single_mails import companies
from mailout.kinds.single_mails.companies import PREFIX, Companies, Scope, Token, hash_of

KEPT_SECONDS = 5.0
"""A known token is not looked up again for so long: that is also how long a revoked one may still work."""
KEPT = 10_000
MINUTE = 60.0


@dataclass
class _Minute:
    ends: float
    used: int = 0


def only(request: Request, name: str) -> str | None:
    """A header that may come once: of two, we and a proxy could each take another one."""
    given = request.headers.getlist(name)
    if len(given) > 1:
        raise ApiProblem(400, "INVALID_PAYLOAD", f"The header {name.title()} comes more than once.")
    return given[0] if given else None


class Callers:
    """Lets a company in, and counts its mails by the minute."""

    def __init__(self, store: Companies, wrong: WrongTokens) -> None:
        self._store = store
        self._wrong = wrong
        self._known: dict[str, tuple[float, Token]] = {}
        self._minutes: dict[str, _Minute] = {}

    async def company(self, request: Request, scope: Scope) -> Token:
        """The caller's token. Raises `ApiProblem` 400, 401 or 403, or `Refused` 429."""
        request.state.request_id = request_id_of(request)
        if request.headers.get("x-request-id", request.state.request_id) != request.state.request_id:
            raise ApiProblem(
                400, "INVALID_PAYLOAD", "X-Request-Id: 1 to 128 visible ASCII characters, no blanks."
            )
        token = await self._token(request)
        if token is None:
            self._wrong.one_more(request)
            raise ApiProblem(
                401,
                "UNAUTHORIZED",
                "The header Authorization: Bearer <token> is missing, or the token is wrong or revoked.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if scope not in token.scopes:
            raise ApiProblem(403, "FORBIDDEN", f"This token may not {scope}.")
        return token

    def charge(self, request: Request, token: Token, mails: int) -> None:
        """So many mails more in this minute, or `ApiProblem` 429; 400 if no minute has room for them."""
        if token.limit_per_minute is None:
            return
        if mails > token.limit_per_minute:
            raise ApiProblem(
                400,
                "INVALID_PAYLOAD",
                f"{mails} mails in one request, but this token may hand in {token.limit_per_minute} a minute:"
                " split it.",
            )
        now = time.monotonic()
        minute = self._minutes.get(token.id)
        if minute is None or now >= minute.ends:
            minute = self._minutes[token.id] = _Minute(now + MINUTE)
        reset = str(ceil(minute.ends - now))
        refused = minute.used + mails > token.limit_per_minute
        minute.used += 0 if refused else mails
        left = max(0, token.limit_per_minute - minute.used)
        request.state.limit_headers = {
            "RateLimit-Limit": str(token.limit_per_minute),
            "RateLimit-Remaining": str(left),
            "RateLimit-Reset": reset,
        }
        if refused:
            detail = f"This token may hand in {token.limit_per_minute} mails a minute; {left} are left."
            raise ApiProblem(429, "RATE_LIMITED", detail, headers={"Retry-After": reset})

    async def _token(self, request: Request) -> Token | None:
        scheme, _, text = (only(request, "authorization") or "").partition(" ")
        if scheme.lower() != "bearer" or not text.startswith(PREFIX) or len(text) > 200:
            return None
        wanted, now = hash_of(text.strip()), time.monotonic()
        kept = self._known.get(wanted)
        if kept is not None and kept[0] > now:
            return kept[1]
        if kept is None:  # whoever was let in before is not shut out by others at the same address
            self._wrong.check(request)
        token = await run_in_threadpool(companies.token, self._store, wanted)
        if token is None or token.revoked_at is not None or not hmac.compare_digest(token.token_hash, wanted):
            self._known.pop(wanted, None)
            return None
        if len(self._known) >= KEPT:
            self._known.clear()
        self._known[wanted] = (now + KEPT_SECONDS, token)
        return token
