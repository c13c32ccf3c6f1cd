"""Who may ask: whoever has the token. Compared in constant time; unset, nobody has it."""

from __future__ import annotations

import hmac

from pydantic import SecretStr
from starlette.exceptions import HTTPException
from starlette.requests import Request


def same(secret: SecretStr | None, given: str | None) -> bool:
    """Whether the given text is the secret; never without a secret."""
    if secret is None or given is None:
        return False
    return hmac.compare_digest(secret.get_secret_value().encode(), given.encode())


def require_token(request: Request, token: SecretStr | None) -> None:
    """`Authorization: Bearer …` with `API_TOKEN`, or 401."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not same(token, given.strip()):
        raise HTTPException(401, headers={"WWW-Authenticate": "Bearer"})
