"""Who may see the queue and act on it: whoever has `API_TOKEN`."""

from __future__ import annotations

import hmac
import time
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import SecretStr
from starlette.exceptions import HTTPException

from gateway.server import site_of
from mailout.base.settings import Settings

_bearer = HTTPBearer(auto_error=False, description="The value of API_TOKEN")

WRONG_A_MINUTE = 10
MINUTE_SECONDS = 60.0
SITES_KEPT = 10_000


class Refused(HTTPException):
    """Refused, with a reason: these callers are our own."""


class WrongTokens:
    """Counts wrong tokens by address. The right one always passes: strangers who share an address with its
    owner (a proxy's) cannot lock the owner out, and a token is too long to be guessed."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._ends = 0.0
        self._counts: Counter[str] = Counter()

    def one_more(self, request: Request) -> None:
        """Raises 429 when there were too many from there in this minute."""
        if self._monotonic() >= self._ends or len(self._counts) > SITES_KEPT:
            self._ends = self._monotonic() + MINUTE_SECONDS
            self._counts.clear()
        site = _site(request)
        self._counts[site] += 1
        if self._counts[site] > WRONG_A_MINUTE:
            raise self._too_many()

    def check(self, request: Request) -> None:
        """Raises 429 if one more would: for a token that costs a look into the store."""
        if self._monotonic() < self._ends and self._counts[_site(request)] >= WRONG_A_MINUTE:
            raise self._too_many()

    def _too_many(self) -> Refused:
        wait = str(max(1, round(self._ends - self._monotonic())))
        return Refused(429, f"Too many wrong tokens. Wait {wait} s.", headers={"Retry-After": wait})


def _site(request: Request) -> str:
    return site_of(request.client.host if request.client else None)


def token_needed(settings: Settings, wrong: WrongTokens) -> Callable[..., Any]:
    """A dependency that lets nobody past without the token."""

    async def check(
        request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
    ) -> None:
        if settings.api_token is None:
            raise Refused(403, "API_TOKEN is not set: set it to a long random text, and restart the gateway.")
        if not same(settings.api_token, given.credentials if given else None):
            wrong.one_more(request)
            raise Refused(
                401,
                "The header Authorization: Bearer <API_TOKEN> is missing or wrong.",
                headers={"WWW-Authenticate": "Bearer"},
            )

    return check


def same(secret: SecretStr | None, given: str | None) -> bool:
    """Whether the given text is the secret, in constant time; never without a secret."""
    if secret is None or given is None:
        return False
    return hmac.compare_digest(secret.get_secret_value().encode(), given.encode())


async def say_why(request: Request, error: Any) -> JSONResponse:
    """The answer to `Refused`."""
    request.state.why = error.detail
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)
