"""Refusals of the API: problem documents (RFC 9457), with a code, and the place of each fault."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse

from gateway.answers import ERROR_CONTENT
from mailout.kinds.single_mails.single_mails import Fault

MEDIA_TYPE = "application/problem+json"

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")

TITLES = {
    400: "The request is not valid",
    401: "A token is needed",
    403: "The token does not allow this",
    404: "Not found",
    405: "This address does not take this method",
    409: "The idempotency key was used for another mail",
    413: "The request is too large",
    429: "Too many requests",
    503: "Try again later",
}


class ApiProblem(Exception):
    """The answer to a request that is refused."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        faults: Sequence[Fault] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        self.faults = faults
        self.headers = dict(headers or {})
        super().__init__(detail)

    @property
    def errors(self) -> list[dict[str, str]]:
        return [{"code": one.code.value, "field": one.field, "message": one.message} for one in self.faults]


def of_faults(faults: Sequence[Fault]) -> ApiProblem:
    """The first one's code is the request's."""
    first = faults[0]
    return ApiProblem(400, first.code, f"{first.field}: {first.message}.", faults=faults)


def request_id_of(request: Request) -> str:
    """The caller's own if a log can carry it, else a new one: it says which request a mail came from."""
    given = request.headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else str(uuid.uuid4())


async def answer_problem(request: Request, error: Any) -> JSONResponse:
    request.state.why = f"{error.code}: {error.detail}"
    request_id = getattr(request.state, "request_id", None) or request_id_of(request)
    headers = error.headers | getattr(request.state, "limit_headers", {}) | {"X-Request-Id": request_id}
    document = {
        "type": "about:blank",
        "title": TITLES.get(error.status, "Not possible"),
        "status": error.status,
        "code": error.code,
        "detail": error.detail,
        "errors": error.errors,
        "requestId": request_id,
    }
    return JSONResponse(document, error.status, headers=headers, media_type=MEDIA_TYPE)


_TEXT = {"type": "string"}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": [*properties], "properties": properties}


_FAULT = _object(code=_TEXT, field=_TEXT, message=_TEXT)
SCHEMA = _object(
    **dict.fromkeys(("type", "title", "code", "detail", "requestId"), _TEXT),
    status={"type": "integer"},
    errors={"type": "array", "items": _FAULT},
)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of an operation, for its description."""
    content = {MEDIA_TYPE: {"schema": SCHEMA}}
    # Before a request reaches the API, the gateway itself refuses in a word: too many at once, too large.
    return {
        status: {
            "description": TITLES[status],
            "content": content | ERROR_CONTENT if status in (413, 429, 503) else content,
        }
        for status in statuses
    }
