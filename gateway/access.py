"""Who may see the queue and act on it: whoever has `API_TOKEN`."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import SecretStr
from starlette.exceptions import HTTPException

from mailout.settings import Settings

_bearer = HTTPBearer(auto_error=False, description="The value of API_TOKEN")


class Refused(HTTPException):
    """Refused, with a reason: these callers are our own."""


def token_needed(settings: Settings) -> Callable[..., Any]:
    """A dependency that lets nobody past without the token."""

    async def check(given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]) -> None:
        if settings.api_token is None:
            raise Refused(403, "API_TOKEN is not set: set it to a long random text, and restart the gateway.")
        if not same(settings.api_token, given.credentials if given else None):
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
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)
