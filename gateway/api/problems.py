"""Refusals of the API: problem documents (RFC 9457), with a code, and the place of each fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse

from mailout.kinds.single_mails.single_mails import Fault

MEDIA_TYPE = "application/problem+json"

TITLES = {
    400: "The request is not valid",
    401: "A token is needed",
    403: "The token does not allow this",
    404: "Not found",
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

    def document(self, request_id: str) -> dict[str, Any]:
        return {
            "type": "about:blank",
            "title": TITLES.get(self.status, "Not possible"),
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            "errors": [
                {"code": fault.code.value, "field": fault.field, "message": fault.message}
                for fault in self.faults
            ],
            "requestId": request_id,
        }


def of_faults(faults: Sequence[Fault]) -> ApiProblem:
    """The first one's code is the request's."""
    first = faults[0]
    return ApiProblem(400, first.code, f"{first.field}: {first.message}.", faults=faults)


async def answer_problem(request: Request, error: Any) -> JSONResponse:
    request.state.why = f"{error.code}: {error.detail}"
    request_id = getattr(request.state, "request_id", "") or ""
    headers = error.headers | getattr(request.state, "limit_headers", {})
    if request_id:
        headers["X-Request-Id"] = request_id
    document = error.document(request_id)
    return JSONResponse(document, error.status, headers=headers, media_type=MEDIA_TYPE)


_TEXT = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "code", "detail", "errors", "requestId"],
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "code": {"type": "string", "examples": ["INVALID_PAYLOAD"]},
        "detail": _TEXT,
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["code", "field", "message"],
                "properties": {"code": _TEXT, "field": _TEXT, "message": _TEXT},
            },
        },
        "requestId": _TEXT,
    },
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of an operation, for its description."""
    content = {MEDIA_TYPE: {"schema": SCHEMA}}
    # Before a request reaches the API, the gateway itself refuses in a word: too many at once, too large.
    plain = {"application/json": {"schema": {"type": "object", "properties": {"error": _TEXT}}}}
    return {
        status: {
            "description": TITLES[status],
            "content": content | plain if status in (413, 429, 503) else content,
        }
        for status in statuses
    }
