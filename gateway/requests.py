"""`POST /send-mailout` and `POST /webhooks/notion`: somebody asks for a mailout.

It is written down, Prefect gets an event, and whoever asked gets an answer; sending is a flow's work. A page
that a webhook of Notion names is sent only if it is Ready and its time has come: webhooks tell of
every change.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, SecretStr, StringConstraints, model_validator
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from gateway.access import TOKEN_NEEDED, Refused, WrongTokens, given, same
from gateway.answers import MAX_BODY, MAX_SMALL_BODY, Ok, body_of, errors, read_body, refusal
from gateway.notion_handshakes import NotionHandshakes
from gateway.parts import own
from gateway.prefect_events import Emitter
from mailout.base import ids
from mailout.base.errors import (
    AbortCode,
    NotFound,
    SourceError,
    SourceNotFound,
    SourceRefused,
    SourceUnavailable,
)
from mailout.base.settings import Settings
from mailout.kinds.mailouts.readiness import AlreadySent
from mailout.letters.content.notion.page import NotionPage
from mailout.letters.content.refs import page_id_of
from mailout.outbox.queue.mailout import Status
from mailout.outbox.queue.port import QueueStore, mailout_or_none
from mailout.outbox.queue.port import Request as Asked

log = logging.getLogger("mailout.gateway")

EVENT = "mailout.requested"
REPEAT_SECONDS = 60.0

HANDSHAKE_BYTES = 4096
TELLING = ("page.created", "page.properties_updated", "page.undeleted", "page.unlocked")
"""Events of Notion after which a page may be Ready that was not. Its text changes far more often."""

_PRINTABLE = r"^[^\x00-\x1f\x7f]+$"
Short = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000, pattern=_PRINTABLE)
]


class MailoutRequest(BaseModel):
    """Which mailout: one of the three."""

    page_id: Short | None = Field(None, description="A Notion page: its id or address")
    mailout_id: Short | None = Field(None, description="A mailout's id in the queue, or a Notion page")
    ref: Short | None = Field(None, description="A Notion page, or a Markdown file where the workers are")
    test: bool | None = Field(
        None,
        description="True: only to TEST_EMAILS. False: for real, now. Without it: as the page or file says",
    )

    @model_validator(mode="after")
    def _one(self) -> MailoutRequest:
        if sum(one is not None for one in (self.page_id, self.mailout_id, self.ref)) != 1:
            raise ValueError("give one of page_id, mailout_id and ref")
        return self


class RequestAccepted(Ok):
    ref: str = Field(description="What will be sent")
    new: bool = Field(description="False: it was asked for less than a minute ago")


PageLookup = Callable[[str], NotionPage]
"""Raises SourceNotFound for a page that is not there."""


@dataclass(eq=False, repr=False)
class Requests:
    settings: Settings
    store: QueueStore
    emitter: Emitter | None
    wrong: WrongTokens
    page_lookup: PageLookup | None

    def __post_init__(self) -> None:
        self._handshakes = NotionHandshakes(self.settings)

    async def send_mailout(self: Own, request: Request) -> RequestAccepted:
        """Ask for a mailout. It is written down when this answers; the same within a minute is one."""
        wanted = given(MailoutRequest, await read_body(request, MAX_SMALL_BODY), code=400)
        ref = await run_in_threadpool(_ref_of, wanted, self.store)
        is_test = wanted.test
        if self.page_lookup is not None and page_id_of(ref):
            says_test = await run_in_threadpool(_look_for, ref, self.page_lookup)
            is_test = says_test if is_test is None else is_test
        if not is_test and not self.settings.rehearses:
            await run_in_threadpool(_refuse_if_sent, ref, self.store)
        return RequestAccepted(ok=True, ref=ref, new=await self._ask(Asked.of(ref, wanted.test)))

    async def notion(self: Own, request: Request) -> JSONResponse:
        """What Notion tells: an integration's webhook (signed), or a database automation's (a secret)."""
        signature = request.headers.get("x-notion-signature")
        known = same(self.settings.notion_automation_secret, request.headers.get("x-mailout-secret"))
        raw = await read_body(request, MAX_BODY if known or signature else MAX_SMALL_BODY)
        if known:
            page = page_id_of(str(_object_in(_object(raw), "data").get("id")))
            if page is None:
                raise HTTPException(400)
            await self._ask(Asked.of(page, if_ready=True))
        elif _signed(self.settings.notion_webhook_token, raw, signature):
            body = _object(raw)
            entity = _object_in(body, "entity")
            page = page_id_of(str(entity.get("id"))) if entity.get("type") == "page" else None
            if page and body.get("type") in TELLING:
                await self._ask(Asked.of(page, if_ready=True))
        else:
            self.wrong.one_more(request)  # anybody may ask for a handshake
            if not await self._handshakes.take(request, _object(raw) if len(raw) <= HANDSHAKE_BYTES else {}):
                request.state.why = "neither a good signature nor the secret"
                return refusal(403)
        return JSONResponse({"ok": True})

    async def _ask(self, asked: Asked) -> bool:
        """Durable first; then Prefect gets an event, unless it got one just now. Whether it is new."""
        new = await run_in_threadpool(self.store.ask, asked, repeat=REPEAT_SECONDS)
        if new:
            tell_prefect(self.emitter, asked)
        return new


Own = Annotated[Requests, own(Requests)]
routes = APIRouter(tags=["requests"])
routes.post(
    "/send-mailout",
    status_code=202,
    response_model=RequestAccepted,
    dependencies=[TOKEN_NEEDED],
    responses=errors(400, 401, 403, 404, 413, 422, 429, 503),
    openapi_extra=body_of(MailoutRequest),
)(Requests.send_mailout)
routes.post("/webhooks/notion", response_model=Ok, responses=errors(400, 403, 413, 429, 503))(Requests.notion)


def tell_prefect(emitter: Emitter | None, asked: Asked) -> None:
    """Of a time that is to come the watch takes care."""
    if emitter is not None and asked.not_before is None:
        emitter.emit(EVENT, {"ref": asked.ref, "test": asked.test, "if_ready": asked.if_ready})


def _ref_of(wanted: MailoutRequest, store: QueueStore) -> str:
    """What Prefect's flow can find: a page, or a Markdown file. 404 for a mailout that nobody knows."""
    if wanted.mailout_id is not None:
        try:
            return store.mailout(wanted.mailout_id).ref
        except NotFound:
            found = page_id_of(wanted.mailout_id)
            if found is None:
                raise Refused(404, f"There is no mailout {wanted.mailout_id}.") from None
            return found
    page = page_id_of(wanted.page_id or wanted.ref or "")
    if page is not None:
        return page
    if wanted.ref is None:
        raise Refused(400, "page_id is neither a Notion page's id nor its address.")
    if not wanted.ref.lower().endswith((".md", ".markdown")):
        raise Refused(400, "ref is neither a Notion page nor a Markdown file (.md).")
    return wanted.ref


def _refuse_if_sent(ref: str, store: QueueStore) -> None:
    """A real mailout is sent once; whoever asks again need not wait for the queue to say so."""
    mailout = mailout_or_none(store, ids.mailout_id(ref))
    if mailout is not None and mailout.status is Status.COMPLETED:
        raise Refused(422, f"{AbortCode.MAILOUT_ALREADY_SENT}: {AlreadySent(mailout.subject)}")


def _look_for(page: str, lookup: PageLookup) -> bool:
    """Whether the page asks for a test. What cannot be asked just now is written down all the same: the queue
    looks for it."""
    try:
        return lookup(page).is_test
    except SourceNotFound as error:
        raise Refused(404, str(error)) from None
    except (SourceUnavailable, SourceRefused) as error:
        log.warning("POST /send-mailout: %s was not looked for: %s", page, error)
        return False
    except SourceError as error:
        raise Refused(422, str(error)) from None


def _signed(token: SecretStr | None, raw: bytes, signature: str | None) -> bool:
    if token is None or signature is None:
        return False
    made = hmac.new(token.get_secret_value().encode(), raw, hashlib.sha256).hexdigest()
    # Hex digits may be written either way.
    return hmac.compare_digest(f"sha256={made}".encode(), signature.strip().lower().encode())


def _object(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise HTTPException(400) from None
    if not isinstance(body, dict):
        raise HTTPException(400)
    return body


def _object_in(body: dict[str, Any], name: str) -> dict[str, Any]:
    found = body.get(name)
    return found if isinstance(found, dict) else {}
