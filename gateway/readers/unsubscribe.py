"""`/unsubscribe`: one click to leave, one to come back if it was a mistake."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from gateway.answers import Ok, errors, read_body, refusal, wants_json
from gateway.pages import HEADERS, Page, Pages
from mailout.base.addresses import address_of
from mailout.base.select import first
from mailout.base.settings import Settings
from mailout.base.signed_links import TokenData, Tokens
from mailout.letters.audience import list_rows, subscriber_rows
from mailout.letters.audience.port import SubscriberColumns
from mailout.letters.content.from_settings import brand_of
from mailout.letters.content.languages import shipped
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.feedback.port import FeedbackStore

MAX_FORM = 4096
KEEP = "keep"
FRESH = 86_400.0
"""Seconds for which scanners follow the links of a mail."""

Token = Annotated[str, Query(description="`base64url(payload).base64url(HMAC-SHA256(payload))`, unpadded")]
Message = Annotated[str, Query(description="Which message the link stands in, signed; older links lack it")]
PAGE: dict[int | str, dict[str, Any]] = {
    200: {"model": Ok, "content": {"text/html": {}}, "description": "Done: a page, or JSON if asked for"}
}
FORM = {
    "requestBody": {
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "List-Unsubscribe": {
                            "type": "string",
                            "enum": ["One-Click"],
                            "description": "RFC 8058",
                        },
                        "action": {
                            "type": "string",
                            "enum": [KEEP],
                            "description": "Undo an unsubscribe",
                        },
                    },
                }
            }
        }
    }
}


def router(settings: Settings, store: FeedbackStore) -> APIRouter:
    routes = APIRouter(tags=["feedback"])
    answer = _Answers(settings, store)

    @routes.get("/unsubscribe", response_model=None, responses={**PAGE, **errors(400, 503)})
    async def unsubscribe(request: Request, token: Token = "", m: Message = "") -> Response:
        """Leave, or be asked first (`UNSUBSCRIBE_CONFIRM`): mail scanners follow the links of fresh mail."""
        who = answer.who(token)
        if who is None:
            return await answer.bad(request)
        if _is_prefetch(request) or await answer.must_ask(request, who):
            return await answer.ask(request, who)
        return await answer.leave(request, who, answer.message(m))

    @routes.post(
        "/unsubscribe",
        response_model=None,
        responses={**PAGE, **errors(400, 409, 413, 503)},
        openapi_extra=FORM,
    )
    async def unsubscribe_now(request: Request, token: Token = "", m: Message = "") -> Response:
        """Leave at once: RFC 8058's one-click form, or the button. With `action=keep`: stay after all."""
        form = parse_qs((await read_body(request, MAX_FORM)).decode("utf-8", "replace"))
        who = answer.who(token)
        if who is None:
            return await answer.bad(request)
        if form.get("action") == [KEEP]:
            return await answer.keep(request, who)
        return await answer.leave(request, who, answer.message(m))

    return routes


class _Answers:
    """What each request comes to, as a page or (`Accept: application/json`) as JSON."""

    def __init__(self, settings: Settings, store: FeedbackStore) -> None:
        self._store = store
        self._confirm = settings.unsubscribe_confirm
        # Without a secret there are no links, so every token is a forgery.
        self._tokens = Tokens(settings.unsubscribe_keys) if settings.unsubscribe_keys else None
        write_to = settings.reply_to or settings.from_email
        self._pages = Pages(settings.org_name, settings.org_address, write_to, brand_of(settings))

    def who(self, token: str) -> TokenData | None:
        return holder_of(self._tokens, token)

    def message(self, written: str) -> str | None:
        """Which message the link stands in; a part that was lost or changed keeps nobody from leaving."""
        return self._tokens.read_message(written) if self._tokens is not None else None

    async def bad(self, request: Request) -> Response:
        request.state.why = "a token that is not ours"
        if wants_json(request):
            return refusal(400, headers=HEADERS)
        return await self._show(request, Page.BAD, 400)

    async def must_ask(self, request: Request, who: TokenData) -> bool:
        """`auto`: where mail went out within a day, since a scanner may read it; it wants no JSON."""
        if self._confirm != "auto":
            return self._confirm == "true"
        if wants_json(request):
            return False
        since = await run_in_threadpool(self._store.now) - FRESH
        return await run_in_threadpool(feedback_rows.mailed_since, self._store, who.email, since)

    async def ask(self, request: Request, who: TokenData) -> Response:
        if wants_json(request):
            return JSONResponse({"ok": False, "confirm": "POST"}, headers=HEADERS)
        return await self._show(request, Page.ASK, who=who)

    async def leave(self, request: Request, who: TokenData, message: str | None) -> Response:
        may_return = await run_in_threadpool(self._store.unsubscribe, who.email, who.list_key, message)
        if wants_json(request):
            return JSONResponse({"ok": True}, headers=HEADERS)
        return await self._show(request, Page.LEFT, who=who, may_return=may_return)

    async def keep(self, request: Request, who: TokenData) -> Response:
        kept = await run_in_threadpool(self._store.resubscribe, who.email, who.list_key)
        if wants_json(request):
            return JSONResponse({"ok": True}, headers=HEADERS) if kept else refusal(409, headers=HEADERS)
        page, status = (Page.KEPT, 200) if kept else (Page.GONE, 409)
        return await self._show(request, page, status, who=who)

    async def _show(
        self, request: Request, page: Page, status: int = 200, who: TokenData | None = None, **values: Any
    ) -> Response:
        accept = request.headers.get("accept-language", "")
        if who is not None:
            values["who"], values["chosen"] = await run_in_threadpool(self._reader, who)
        return self._pages.show(page, status, accept_language=accept, **values)

    def _reader(self, who: TokenData) -> tuple[TokenData, str | None]:
        """Their list by its name, and the language that they have chosen."""
        of = list_rows.list_or_none(self._store, who.list_key) if who.list_key else None
        person = first(self._store, subscriber_rows.COLUMNS, {"email_norm": who.email})
        return TokenData(who.email, of.name if of else who.list_key), person and chosen_language(person)


def holder_of(tokens: Tokens | None, token: str) -> TokenData | None:
    """Whom the token speaks for, normalised; None: it is not ours, or names nobody."""
    data = tokens.read(token) if tokens is not None else None
    email = address_of(data.email) if data is not None else None
    return TokenData(email, data.list_key) if data is not None and email is not None else None


def chosen_language(person: SubscriberColumns) -> str | None:
    """What they have chosen for our pages, or an import knew of them."""
    written = str(person["attributes"].get("language") or "").partition("-")[0].lower()
    return written if written in shipped() else None


def _is_prefetch(request: Request) -> bool:
    """A browser that fetches what nobody has clicked on yet."""
    words = (request.headers.get(name, "") for name in ("sec-purpose", "purpose", "x-purpose", "x-moz"))
    return any("prefetch" in word.lower() or "preview" in word.lower() for word in words)
