"""All that is known of a reader, and deleting it: asked for by a letter's link, confirmed by a mailed one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from gateway.answers import page_or
from gateway.pages import NO_INDEX, Page, Pages
from gateway.parts import own
from gateway.readers.unsubscribe import Token
from mailout.base.errors import NotFound, StoreError
from mailout.base.ids import transactional_id
from mailout.base.settings import Settings
from mailout.base.signed_links import SignedLinks, TokenData
from mailout.base.time_format import iso
from mailout.insight.history import history_rows
from mailout.letters.audience import subscriber_rows
from mailout.letters.content.from_settings import brand_of
from mailout.letters.content.languages import Language
from mailout.outbox.delivery.single_mails import OURS, SignedLink, SingleMail
from mailout.outbox.feedback import feedback_rows
from mailout.readers.link_mail import link_mail
from mailout.store import Store

LINK_SECONDS = 3600.0
MAIL_SECONDS = 3600.0
"""One mail of a kind to an address in so long, however often it is asked for."""
MOST_ROWS = 1000
"""Of letters and of events."""


class Confirmed(StrEnum):
    """What only the owner of a mailbox may ask for. Each is a purpose of its own for `SignedLinks`."""

    DATA = "data"
    DELETE = "delete"

    @property
    def path(self) -> str:
        return f"/preferences/{self}"


class OwnData:
    """The mails, and the pages that the links in them open. `forget` erases a normalised address; NotFound:
    nobody knows it."""

    def __init__(self, settings: Settings, store: Store, forget: Callable[[str], object]) -> None:
        self._store = store
        self._forget = forget
        self._secrets = settings.unsubscribe_keys[:1]  # a link lasts an hour: no older secret
        self._sender = settings.org_name or ""
        self._brand = brand_of(settings)
        self._is_rehearsal = settings.rehearses
        self._pages = Pages(settings)

    def mail(self, email: str, what: Confirmed, words: Language, *, joined_at: float) -> None:
        """Into the outbox. Its id makes it one an hour; who was deleted and has joined again gets another."""
        now = self._store.now()
        window = int(now // MAIL_SECONDS)
        key = f"{what} {email} {window} {int(joined_at)}"
        payload = {"email": email, "at": int(now), "language": words.code}
        content = link_mail(
            words.pages[f"{what}_mail_subject"],
            [words.pages[f"{what}_mail_before"]],
            words.pages[f"{what}_mail_button"],
            [words.pages["link_mail_after"]],
            sender=self._sender,
            brand=self._brand,
            words=words,
        )
        mail = SingleMail(
            id=transactional_id(OURS, key, rehearsal=self._is_rehearsal),
            company_id=OURS,
            request_id=f"{what} {window}",
            email=email,
            content=content,
            idempotency_key=key,
            is_rehearsal=self._is_rehearsal,
            link=SignedLink(_purpose(what), what.path, payload),
        )
        self._store.accept_single_mails([mail])

    def data(self: Own, request: Request, token: Token = "", format: str = "") -> Response:
        """All that is known of whoever got this link by mail; `format=json` for programs."""
        held = self._holder(token, Confirmed.DATA)
        if held is None:
            return self._expired(request)
        known = known_of(self._store, held["email"])
        if format == "json":
            named = {"Content-Disposition": 'attachment; filename="my-data.json"'}
            return JSONResponse(known, headers=NO_INDEX | named)
        return self._show(request, Page.OWN_DATA, held, known=known, token=token)

    def ask(self: Own, request: Request, token: Token = "") -> Response:
        """The last question. It changes nothing: scanners follow links."""
        held = self._holder(token, Confirmed.DELETE)
        return self._expired(request) if held is None else self._show(request, Page.ERASE, held)

    def delete(self: Own, request: Request, token: Token = "") -> Response:
        """Erase whoever got this link by mail. Twice is once; who has signed up again since is another."""
        held = self._holder(token, Confirmed.DELETE)
        if held is None or subscriber_rows.joined_since(self._store, held["email"], held["at"] + 1):
            return self._expired(request)
        try:
            self._forget(held["email"])
        except NotFound:
            return self._show(request, Page.ERASED, held)  # it was done before
        except StoreError as error:
            request.state.why = str(error)
            return self._show(request, Page.BUSY, held, 409)
        return self._show(request, Page.ERASED, held)

    def _holder(self, token: str, what: Confirmed) -> Mapping[str, Any] | None:
        """Whose link it is; None: it is not ours, made for something else, or too old."""
        return SignedLinks(self._secrets, _purpose(what)).read_fresh(token, self._store.now(), LINK_SECONDS)

    def _show(
        self, request: Request, page: Page, held: Mapping[str, Any], status: int = 200, **values: Any
    ) -> Response:
        who, chosen = TokenData(held["email"]), held["language"]
        return self._pages.show(request, page, status, chosen=chosen, who=who, **values)

    def _expired(self, request: Request) -> Response:
        request.state.why = "a link that is not ours, or too old"
        return self._pages.show(request, Page.EXPIRED, 400)


Own = Annotated[OwnData, own(OwnData)]
routes = APIRouter(tags=["readers"])
routes.get(Confirmed.DATA.path, response_model=None, responses=page_or(400, 503))(OwnData.data)
routes.get(Confirmed.DELETE.path, response_model=None, responses=page_or(400, 503))(OwnData.ask)
routes.post(Confirmed.DELETE.path, response_model=None, responses=page_or(400, 409, 503))(OwnData.delete)


def _purpose(what: Confirmed) -> str:
    return f"own-{what}"


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
