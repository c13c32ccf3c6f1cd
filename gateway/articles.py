"""`POST /articles/send`: somebody with the admin password asks for a batch of an article.

It is written down, Prefect gets an event, and whoever asked gets the batch's id; sending is a flow's work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from math import ceil
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from starlette.concurrency import run_in_threadpool

from gateway.access import same, site_in
from gateway.answers import MAX_SMALL_BODY, body_of, read_body
from gateway.parts import own
from gateway.prefect_events import Emitter
from gateway.wrong_passwords import WrongPasswords
from mailout.base.errors import Abort, UsageError
from mailout.base.settings import Settings
from mailout.kinds.articles.articles import ArticleIntake, BatchUsed
from mailout.kinds.articles.order import DEFAULT_ACTOR, ArticleOrder
from mailout.letters.audience.places import FilterError
from mailout.letters.audience.segment_tree import LONGEST_FILTER
from mailout.letters.content.from_settings import require_public_addresses
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.port import Request as Asked
from mailout.outbox.queue.port import RequestKind
from mailout.store import Store

EVENT = "mailout.article.requested"
REPEAT_SECONDS = 60.0
MOST_ERRORS = 10

Key = Annotated[str, StringConstraints(pattern="^[a-z0-9-]+$", max_length=200)]
Value = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
FilterText = Annotated[str, StringConstraints(max_length=LONGEST_FILTER, pattern=r"^[^\x00-\x1f\x7f]*$")]


class ArticleRequest(BaseModel):
    """Which article, to whom, under which name."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    campaign_tag: Key
    article_key: Key
    send_batch_id: UUID = Field(description="Together with the tag it names the batch: the same is one batch")
    audience_filter: dict[Key | Value, FilterText] = Field(
        default_factory=dict,
        max_length=20,
        description="state, county, place, list, an attribute; or filter: a segment's filter",
    )
    actor: Annotated[Value, StringConstraints(min_length=1, strip_whitespace=True)] = DEFAULT_ACTOR
    admin_password: str | None = Field(None, description="Or as Authorization: Bearer")

    def order(self) -> ArticleOrder:
        return ArticleOrder.checked(
            self.campaign_tag, self.article_key, str(self.send_batch_id), self.audience_filter, self.actor
        )


class ArticleApi:
    def __init__(
        self, settings: Settings, store: Store, emitter: Emitter | None, wrong: WrongPasswords
    ) -> None:
        self._settings = settings
        self._store = store
        self._emitter = emitter
        self._wrong = wrong
        self._articles = ArticleIntake(settings, store, rehearses=settings.rehearses)

    async def send(self: Own, request: Request) -> JSONResponse:
        """Ask for a batch of an article. The same batch again is the same batch."""
        if self._settings.admin_password is None:
            message = "ADMIN_PASSWORD is not set on the server: set it, and restart the gateway."
            return _refusal(503, "ADMIN_PASSWORD_NOT_SET", message)
        site = site_in(request)
        if (wait := self._wrong.wait_of(site)) is not None:
            return _too_many(wait)
        given, raw = _password_in_header(request), b""
        if given is None:
            raw = await read_body(request, MAX_SMALL_BODY)
            given = _password_in(raw)
        if (wait := await self._wrong.take_turn(site)) is not None:
            return _too_many(wait)
        if not same(self._settings.admin_password, given):
            self._wrong.one_more(site)
            return _wrong(request)
        try:
            order = ArticleRequest.model_validate_json(
                raw or await read_body(request, MAX_SMALL_BODY)
            ).order()
        except ValidationError as error:
            return _wrong_fields(_problems(error))
        try:
            require_public_addresses(self._settings, rehearses=self._settings.rehearses)
        except Abort as abort:
            return _refusal(503, abort.code.upper(), str(abort))
        try:
            known = await run_in_threadpool(self._articles.known, order)
            id = known.id if known else await run_in_threadpool(self._articles.id_if_anybody, order)
            if id is None:
                return JSONResponse({"ok": True, "data": {"sent": 0, "skipped": "NO_RECIPIENTS"}}, 200)
            new = known is None and await run_in_threadpool(_ask, self._store, order)
        except FilterError as error:
            return _wrong_fields({f"audience_filter.{error.key}": str(error)})
        except BatchUsed as error:
            return _refusal(409, "BATCH_USED", str(error), {"send_batch_id": str(error)})
        except (UsageError, Abort) as error:
            return _wrong_fields({"article_key": str(error)})
        if new and self._emitter is not None:
            self._emitter.emit(EVENT, asdict(order))  # the flow makes the same request of it
        return JSONResponse({"ok": True, "data": {"mailout_id": id, "new": new}}, 202)


def _ask(store: Store, order: ArticleOrder) -> bool:
    """Whether it is new. The first that asked for a batch has it, also while no flow has taken it up yet."""
    ours = Asked(order.to_ref(), RequestKind.ARTICLE)
    new = store.ask(ours, repeat=REPEAT_SECONDS)
    for asked in queue_rows.asked(store, waiting=0.0):
        if asked.how is not RequestKind.ARTICLE:
            continue
        first = ArticleOrder.from_ref(asked.ref)
        if (first.campaign_tag, first.send_batch_id) == (order.campaign_tag, order.send_batch_id):
            if (first.article_key, first.audience_filter) != (order.article_key, order.audience_filter):
                store.answered(ours)
                raise BatchUsed.for_other(first.article_key, first.audience_filter)
            if asked != ours:  # somebody else asked for the same
                store.answered(ours)
                return False
            break
    return new


def _password_in_header(request: Request) -> str | None:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else None


def _password_in(raw: bytes) -> str | None:
    """Of a body that need not be right otherwise."""
    try:
        return _OnlyPassword.model_validate_json(raw).admin_password
    except ValidationError:
        return None


class _OnlyPassword(BaseModel):
    admin_password: str | None = None


def _too_many(wait: float) -> JSONResponse:
    """Also for the right one: a person chose it, and else a guess would still be told from the answer."""
    seconds = str(max(1, ceil(wait)))
    message = f"Too many wrong passwords. Wait {seconds} s."
    return _refusal(429, "RATE_LIMITED", message, headers={"Retry-After": seconds})


def _wrong(request: Request) -> JSONResponse:
    request.state.why = "a wrong admin password, or none"
    return _refusal(401, "UNAUTHORIZED", "The admin password is missing or wrong.")


def _problems(error: ValidationError) -> dict[str, str]:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return {".".join(map(str, one["loc"])) or "body": one["msg"] for one in found[:MOST_ERRORS]}


def _wrong_fields(details: Mapping[str, str]) -> JSONResponse:
    return _refusal(400, "VALIDATION_ERROR", "The request cannot be understood.", details)


def _refusal(
    status: int,
    code: str,
    message: str,
    details: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    body = {"ok": False, "code": code, "message": message, "details": dict(details or {})}
    return JSONResponse(body, status, headers=headers)


_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Nobody is in the audience"},
    400: {"description": "A field is wrong: details says which"},
    401: {"description": "The admin password is missing or wrong"},
    409: {"description": "The batch id was used for another article or filter"},
    429: {"description": "Too many wrong passwords"},
    503: {"description": "A setting is missing or wrong on the server, or the store does not answer"},
}

Own = Annotated[ArticleApi, own(ArticleApi)]
routes = APIRouter(tags=["articles"])
routes.post("/articles/send", openapi_extra=body_of(ArticleRequest), responses=_ANSWERS, status_code=202)(
    ArticleApi.send
)
