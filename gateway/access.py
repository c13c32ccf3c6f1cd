"""Who may see the queue and act on it: whoever has `API_TOKEN`."""

from __future__ import annotations

import hmac
from typing import Annotated, TypeVar

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, SecretStr, ValidationError
from starlette.exceptions import HTTPException

from gateway.answers import what_is_wrong
from gateway.parts import own
from gateway.server import site_of
from gateway.wrong_passwords import WrongTries

_bearer = HTTPBearer(auto_error=False, description="The value of API_TOKEN")

MINUTE_SECONDS = 60.0
Model = TypeVar("Model", bound=BaseModel)


class Refused(HTTPException):
    """Refused, with a reason: these callers are our own."""


def given(model: type[Model], raw: bytes, code: int = 422) -> Model:
    """What a caller sent, or `Refused`, with what is wrong in it."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise Refused(code, what_is_wrong(error.errors())) from None


class WrongTokens:
    """Ten a minute from each address. The right one always passes: strangers who share an address with its
    owner (a proxy's) cannot lock the owner out, and a token is too long to be guessed."""

    def __init__(self) -> None:
        self._tries = WrongTries(MINUTE_SECONDS)

    def one_more(self, request: Request) -> None:
        """Raises 429 when there were too many from there in this minute."""
        self.check(request)
        self._tries.one_more(site_in(request))

    def check(self, request: Request) -> None:
        """Raises 429 if one more would: for a token that costs a look into the store."""
        if (rest := self._tries.wait_of(site_in(request))) is not None:
            wait = str(max(1, round(rest)))
            raise Refused(429, f"Too many wrong tokens. Wait {wait} s.", headers={"Retry-After": wait})


def site_in(request: Request) -> str:
    """The address that a request comes from, as one that counts."""
    return site_of(request.client.host if request.client else None)


class ApiToken:
    """Lets nobody past without it."""

    def __init__(self, token: SecretStr | None, wrong: WrongTokens) -> None:
        self._token = token
        self._wrong = wrong

    async def check(
        self: Own, request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
    ) -> None:
        if self._token is None:
            raise Refused(403, "API_TOKEN is not set: set it to a long random text, and restart the gateway.")
        if not same(self._token, given.credentials if given else None):
            self._wrong.one_more(request)
            raise Refused(
                401,
                "The header Authorization: Bearer <API_TOKEN> is missing or wrong.",
                headers={"WWW-Authenticate": "Bearer"},
            )


Own = Annotated[ApiToken, own(ApiToken)]
TOKEN_NEEDED = Depends(ApiToken.check)


def same(secret: SecretStr | None, given: str | None) -> bool:
    """Whether the given text is the secret, in constant time; never without a secret."""
    if secret is None or given is None:
        return False
    return hmac.compare_digest(secret.get_secret_value().encode(), given.encode())
