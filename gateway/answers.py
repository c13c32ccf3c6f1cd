"""What the gateway answers: a short word for what it did, or for what it refuses. It never says why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

WORDS = {
    400: "bad request",
    401: "unauthorized",
    403: "forbidden",
    404: "not found",
    405: "method not allowed",
    409: "not possible",
    413: "too large",
    500: "internal error",
    503: "try again later",
}


class Ok(BaseModel):
    ok: bool = Field(examples=[True])


class Error(BaseModel):
    error: str = Field(
        description="A short word; the reason is in the gateway's log.", examples=["forbidden"]
    )


def errors(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of an operation, for its description."""
    return {code: {"model": Error, "description": WORDS[code].capitalize()} for code in codes}


def refusal(code: int, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": WORDS.get(code, "not possible")}, code, headers=headers)


async def read_body(request: Request, most: int) -> bytes:
    """The whole body, or 413 as soon as it is too long: nobody fills our memory."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        raise HTTPException(413)
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise HTTPException(413)
    except ClientDisconnect:
        raise HTTPException(400) from None
    return bytes(body)
