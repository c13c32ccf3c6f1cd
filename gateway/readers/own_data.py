"""All that is known of a reader, and deleting it: asked for by a letter's link, confirmed by a mailed one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from gateway.answers import errors
from gateway.pages import HEADERS, Page, Pages
from gateway.prefect_events import SINGLE_MAILS_EVENT, Emitter
from gateway.readers.unsubscribe import Token
from mailout.base.errors import NotFound, StoreError
from mailout.base.ids import transactional_id
from mailout.base.settings import Settings
from mailout.base.signed_links import SignedLinks, TokenData
from mailout.base.time_format import iso
from mailout.insight.history import history_rows
from mailout.letters.audience import subscriber_rows
from mailout.letters.content.brand import Brand
from mailout.letters.content.from_settings import brand_of
from mailout.letters.content.languages import Language
from mailout.letters.content.layout import link_mail
from mailout.letters.content.model import Content, mark
from mailout.outbox.delivery.single_mails import OURS, SIGNED_LINK, SignedLink, SingleMail
from mailout.outbox.feedback import feedback_rows
from mailout.store import Store

LINK_SECONDS = 3600.0
MAIL_SECONDS = 600.0
"""One mail of a kind to an address in so long, however often it is asked for."""
MOST_ROWS = 1000
"""Of letters and of events."""
PAGE: dict[int | str, dict[str, Any]] = {200: {"content": {"text/html": {}}, "description": "A page"}}


class Confirmed(StrEnum):
    """What only the owner of a mailbox may ask for. Each is a purpose of its own for `SignedLinks`."""

    DATA = "data"
    DELETE = "delete"

    @property
    def path(self) -> str:
        return f"/preferences/{self}"


@dataclass(frozen=True)
class OwnData:
    """The mails, and the links in them."""

    store: Store
    secrets: Sequence[str]
    sender: str
    brand: Brand
    rehearses: bool
    emitter: Emitter | None = None

    @classmethod
    def of(
        cls, settings: Settings, store: Store, *, rehearses: bool, emitter: Emitter | None
    ) -> OwnData | None:
        """None: without `PUBLIC_URL` and a secret there are no links to mail."""
        if not settings.public_url or not settings.unsubscribe_keys:
            return None
        sender = settings.org_name or ""
        return cls(store, settings.unsubscribe_keys, sender, brand_of(settings), rehearses, emitter)

    async def send(self, email: str, what: Confirmed, words: Language) -> None:
        is_served = await run_in_threadpool(self._hand_in, email, what, words)
        if not is_served and self.emitter is not None:
            self.emitter.emit(SINGLE_MAILS_EVENT)  # the watch would find it seconds later

    def _hand_in(self, email: str, what: Confirmed, words: Language) -> bool:
        """Into the outbox; whether somebody is there to send it. Its id makes it one in ten minutes."""
        now = self.store.now()
        key = f"{what} {email} {int(now // MAIL_SECONDS)}"
        payload = {"email": email, "at": int(now), "language": words.code}
        mail = SingleMail(
            id=transactional_id(OURS, key, rehearsal=self.rehearses),
            company_id=OURS,
            request_id=f"{what} {int(now // MAIL_SECONDS)}",
            email=email,
            content=self._content(what, words),
            idempotency_key=key,
            is_rehearsal=self.rehearses,
            link=SignedLink(_purpose(what), what.path, payload),
        )
        self.store.accept_single_mails([mail])
        return self.store.single_mails_waiting(rehearsal=self.rehearses).is_served

    def _content(self, what: Confirmed, words: Language) -> Content:
        subject, before, button = (
            words.pages[f"{what}_mail_{part}"] for part in ("subject", "before", "button")
        )
        return link_mail(
            subject,
            before,
            button,
            words.pages["link_mail_after"],
            link=mark(SIGNED_LINK),
            sender=self.sender,
            brand=self.brand,
            lang=words.code,
        )

    def holder(self, token: str, what: Confirmed) -> Mapping[str, Any] | None:
        """Whose link it is; None: it is not ours, made for something else, or too old."""
        return SignedLinks(self.secrets, _purpose(what)).read_fresh(token, self.store.now(), LINK_SECONDS)


def _purpose(what: Confirmed) -> str:
    return f"own-{what}"


def router(own_data: OwnData, pages: Pages, forget: Callable[[str], object]) -> APIRouter:
    """`forget` erases a normalised address; NotFound: nobody knows it."""
    routes = APIRouter(tags=["readers"])
    store = own_data.store

    def show(page: Page, held: Mapping[str, Any], status: int = 200, **values: Any) -> Response:
        return pages.show(page, status, chosen=held["language"], who=TokenData(held["email"]), **values)

    def expired(request: Request) -> Response:
        request.state.why = "a link that is not ours, or too old"
        accept = request.headers.get("accept-language", "")
        return pages.show(Page.EXPIRED, 400, accept_language=accept)

    @routes.get(Confirmed.DATA.path, response_model=None, responses={**PAGE, **errors(400, 503)})
    async def data(request: Request, token: Token = "", format: str = "") -> Response:
        """All that is known of whoever got this link by mail; `format=json` for programs."""
        held = await run_in_threadpool(own_data.holder, token, Confirmed.DATA)
        if held is None:
            return expired(request)
        known = await run_in_threadpool(known_of, store, held["email"])
        if format == "json":
            named = {"Content-Disposition": 'attachment; filename="my-data.json"'}
            return JSONResponse(known, headers=HEADERS | named)
        return show(Page.OWN_DATA, held, known=known, token=token)

    @routes.get(Confirmed.DELETE.path, response_model=None, responses={**PAGE, **errors(400, 503)})
    async def ask(request: Request, token: Token = "") -> Response:
        """The last question. It changes nothing: scanners follow links."""
        held = await run_in_threadpool(own_data.holder, token, Confirmed.DELETE)
        return expired(request) if held is None else show(Page.ERASE, held)

    @routes.post(Confirmed.DELETE.path, response_model=None, responses={**PAGE, **errors(400, 409, 503)})
    async def delete(request: Request, token: Token = "") -> Response:
        """Erase whoever got this link by mail. Twice is once."""
        held = await run_in_threadpool(own_data.holder, token, Confirmed.DELETE)
        if held is None:
            return expired(request)
        try:
            await run_in_threadpool(forget, held["email"])
        except NotFound:
            return show(Page.ERASED, held)
        except StoreError as error:
            request.state.why = str(error)
            return show(Page.BUSY, held, 409)
        return show(Page.ERASED, held)

    return routes


def known_of(store: Store, email: str) -> dict[str, Any]:
    """Ready for JSON and for the page: times in ISO 8601."""
    try:
        person: dict[str, Any] = dict(subscriber_rows.subscriber(store, email))
    except NotFound:
        person = {}
    agreed = [_with_times(dict(one)) for one in subscriber_rows.consents(store, email)]
    lists = [_with_times(dict(one)) for one in person.pop("lists", ())]
    attributes = person.pop("attributes", {})
    values = _with_times(person)
    letters = [
        *history_rows.messages_to(store, email, limit=MOST_ROWS),
        *history_rows.single_mails_to(store, email, limit=MOST_ROWS),
    ]
    return {
        "values": {name: value for name, value in values.items() if value not in (None, "", [], {})},
        "attributes": attributes,
        "lists": lists,
        "consents": agreed,
        "letters": [
            {
                "subject": one["subject"],
                "state": str(one["state"]),
                "at": iso(one["sent_at"] or one["created_at"]),
            }
            for one in letters
        ],
        "events": [
            {"event": one["event_type"], "at": iso(one["event_at"]), **one["detail"]}
            for one in feedback_rows.delivery_events(store, email=email, limit=MOST_ROWS)
        ],
    }


def _with_times(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: iso(value) if isinstance(value, float) else value  # all floats here are moments
        for name, value in row.items()
    }
