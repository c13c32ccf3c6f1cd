"""What the gateway answers: a short word for what it did, or for what it refuses.

Why, it says to whoever has `API_TOKEN` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import parse_qs

from fastapi import Depends, HTTPException
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.requests import ClientDisconnect, Request

from gateway.multipart import MOST_FIELDS, MULTIPART, Parts, kind_of

MAX_BODY = 1024 * 1024
"""What SNS sends has at most 256 KB, quoted within JSON up to double that; Notion sends properties along."""

MAX_SMALL_BODY = 64 * 1024
"""Of a request that is a few fields."""


WORDS = {
    400: "bad request",
    401: "unauthorized",
    403: "forbidden",
    404: "not found",
    405: "method not allowed",
    409: "not possible",
    408: "too slow",
    413: "too large",
    415: "not a form that is read here",
    422: "not possible",
    429: "too many",
    500: "internal error",
    503: "try again later",
}


class Ok(BaseModel):
    ok: bool = Field(examples=[True])


class Held(BaseModel):
    """Something that does not go on, while the gateway itself is well."""

    waiting: int = Field(description="How many", examples=[3])
    since: str = Field(examples=["2026-11-16T12:00:00Z"])
    code: str = Field(examples=["SES_IDENTITY_NOT_VERIFIED"])


class Health(Ok):
    single_mails: Held | None = Field(
        None, description="Why single mails wait; absent: nothing holds them up"
    )


_WORD = {
    "type": "string",
    "description": "A short word; the reason is in the gateway's log.",
    "examples": ["forbidden"],
}
_ERROR = {"type": "object", "properties": {"error": _WORD}, "required": ["error"], "title": "Error"}
ERROR_CONTENT = {"application/json": {"schema": _ERROR}}


def errors(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of an operation, for its description.

    As a schema: for a model, FastAPI would build a validator for each code of each route.
    """
    return {code: {"description": WORDS[code].capitalize(), "content": ERROR_CONTENT} for code in codes}


def page_or(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The answers of an operation that shows a page, for its description."""
    said = "A page; programs get JSON from /join and /unsubscribe if they ask for it"
    page = {"model": Ok, "content": {"text/html": {}}, "description": said}
    return {200: page, **errors(*codes)}


def reads_pages(request: Request) -> bool:
    """A browser."""
    return "text/html" in request.headers.get("accept", "")


def wants_json(request: Request) -> bool:
    """A program, and no browser."""
    return "application/json" in request.headers.get("accept", "") and not reads_pages(request)


def takes_json_alone(request: Request) -> bool:
    """Written to call us: `*/*` is what every library says."""
    kinds = request.headers.get("accept", "").split(",")
    return all(kind.partition(";")[0].strip() == "application/json" for kind in kinds)


def refusal(code: int, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": WORDS.get(code, "not possible")}, code, headers=headers)


def what_is_wrong(found: Sequence[Any]) -> str:
    """The first thing that pydantic found, for a person."""
    place = ".".join(str(part) for part in found[0]["loc"] if part != "body")
    said = found[0]["msg"].removeprefix("Value error, ")
    return f"{place}: {said}." if place else f"{said}."


def body_of(model: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    """A body that the route reads itself, once its caller may ask, for its description: the framework would
    read and parse it before."""
    content = {"application/json": {"schema": schema_of(model)}}
    return {"requestBody": {"required": required, "content": content}}


@cache
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """In one piece: references would point nowhere."""
    schema = model.model_json_schema()
    return dict(_inlined(schema, schema.pop("$defs", {})))


def _inlined(part: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(part, Mapping):
        if "$ref" in part:
            named = definitions[part["$ref"].rpartition("/")[2]]
            rest = {name: value for name, value in part.items() if name != "$ref"}
            return _inlined(named, definitions) | rest
        return {name: _inlined(value, definitions) for name, value in part.items()}
    if isinstance(part, Sequence) and not isinstance(part, str):
        return [_inlined(one, definitions) for one in part]
    return part


def form_of(fields: Mapping[str, object], required: Iterable[str] = ()) -> dict[str, Any]:
    """The same of a form that `form_within` reads."""
    schema = {"type": "object", "required": [*required], "properties": dict(fields)}
    return {"requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": schema}}}}


async def read_body(request: Request, most: int) -> bytes:
    """The whole body, or 413 as soon as it is too long: nobody fills our memory. Every route reads its body
    by this: the framework would read it whole before it asks for a token."""
    declared = request.headers.get("content-length", "")
    too_long = HTTPException(413, f"The body has more than {most:,} bytes.")
    if declared.isdecimal() and int(declared) > most:
        raise too_long
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise too_long
    except ClientDisconnect:
        raise HTTPException(400, "The body did not arrive whole.") from None
    return bytes(body)


Form = Mapping[str, Sequence[str]]
"""The values of each field."""


def form_within(most: int) -> Any:
    """A dependency: the form that was posted, 413 if it has more than `most` bytes."""

    async def read(request: Request) -> Form:
        kind, boundary = kind_of(request)
        raw = await read_body(request, most)
        if kind == MULTIPART:
            return _fields_in(boundary, raw)
        try:
            return parse_qs(raw.decode("utf-8", "replace"), max_num_fields=MOST_FIELDS)
        except ValueError:
            raise HTTPException(400) from None

    return Depends(read)


def _fields_in(boundary: bytes, raw: bytes) -> Form:
    """None, if it is broken: that keeps nobody from leaving by one click."""
    form: dict[str, list[str]] = {}
    try:
        for name, value in Parts.read(boundary, raw).fields:
            form.setdefault(name, []).append(value)
    except ValueError:
        return {}
    return form
