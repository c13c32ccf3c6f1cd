"""`/join`: strangers ask to join a list, and confirm it by the link in a mail.

Whoever posts gets the same answer after the same work: neither tells who is subscribed, nor what a limit
says. Only the POST of the confirmation's page changes anything; mail scanners follow links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import urlunsplit
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from gateway.answers import Form, form_of, form_within, page_or, wants_json
from gateway.pages import NO_INDEX, Page, Pages
from gateway.parts import own
from gateway.readers.unsubscribe import Token
from gateway.server import network_of
from mailout.base.settings import Settings
from mailout.base.signed_links import SignedLinks, TokenData
from mailout.insight.metrics.port import Counter
from mailout.letters.audience.list_rows import List, lists, public_lists
from mailout.letters.content.from_settings import brand_of
from mailout.letters.content.refs import split_address
from mailout.readers.confirmations import PURPOSE, ConfirmationMails
from mailout.readers.port import CONFIRM_SECONDS, Asked, Confirmation, Confirmed
from mailout.store import Store

FORM_BYTES = 8192
MAX_LISTS = 10
"""In one sign-up: all of it has to fit into a link."""
QUICKEST_SECONDS = 2.0
"""Nobody types an address and presses the button in less."""
FROM_ANYWHERE = {"Access-Control-Allow-Origin": "*"}
"""A form may stand on any site, and its script may read that it was taken: that is all it ever says."""

ListKey = Annotated[str | None, Query(alias="list", description="Show this list alone")]
FIELDS = {
    "email": {"type": "string"},
    "name": {"type": "string"},
    "list": {"type": "array", "items": {"type": "string"}, "description": "Keys of public lists"},
    "website": {"type": "string", "description": "Stays empty: no person sees it"},
    "started": {"type": "string", "description": "When the form was shown, signed; a static form has none"},
}


class Joining:
    def __init__(self, settings: Settings, store: Store) -> None:
        self._store = store
        self._pages = Pages(settings)
        self._links = SignedLinks(settings.unsubscribe_keys, PURPOSE)
        self._started = SignedLinks(settings.unsubscribe_keys, f"{PURPOSE} form")
        self._own_page = f"{(settings.public_url or '').rstrip('/')}/join"
        self._mails = ConfirmationMails(
            settings.org_name or "",
            settings.org_address or "",
            brand_of(settings),
            ZoneInfo(settings.send_timezone),
            settings.rehearses,
        )

    def form(self: Own, request: Request, key: ListKey = None) -> Response:
        """The public lists, and a form."""
        open_to_all = public_lists(self._store)
        shown = [one for one in open_to_all if one.key == key] or open_to_all
        return self._form(request, shown, ticked=[one.key for one in shown] if len(shown) == 1 else [])

    def ask(self: Own, request: Request, form: Annotated[Form, form_within(FORM_BYTES)]) -> Response:
        """Ask for a confirmation. Everybody gets the same answer; over a limit nothing is sent."""
        # Reads the lists and the time, then writes once, whatever was posted and by whom.
        email, name, started = (form.get(field, [""])[0].strip() for field in ("email", "name", "started"))
        open_to_all = public_lists(self._store)
        keys = form.get("list", [])
        chosen = [one for one in open_to_all if one.key in keys]
        now = self._store.now()
        if not keys and len(open_to_all) == 1:
            chosen = list(open_to_all)
        sign_up = self._mails.sign_up(
            email,
            chosen,
            name=name,
            page=_page(request) or self._own_page,
            network=network_of(request.client.host if request.client else None),
            words=self._pages.spoken(request),
            now=now,
        )
        given = {"ticked": keys, "email": email, "name": name, "started": started}
        if sign_up is None or not 0 < len(chosen) <= MAX_LISTS:
            wrong = "join_bad_email" if sign_up is None else "join_no_list"
            return self._refuse(request, open_to_all, wrong, **given)
        is_bot, is_quick = self._is_bot(form), self._is_quick(started, now)
        if is_bot or is_quick:
            self._store.add_counts({(Counter.SIGN_UPS, Asked.BOT): 1})
        else:
            self._store.ask_sign_up(sign_up)
        if is_quick and not is_bot:
            return self._refuse(request, open_to_all, "join_again", **given)
        answer = self._pages.answer(request, Page.ASKED)
        answer.headers.update(FROM_ANYWHERE)
        return answer

    def confirm(self: Own, request: Request, token: Token = "") -> Response:
        """One button. It changes nothing."""
        found = self._read(token)
        if found is None:
            return self._bad(request)
        return self._pages.answer(request, Page.CONFIRM, **self._about(found), wording=found.wording)

    def confirm_now(self: Own, request: Request, token: Token = "") -> Response:
        """Subscribe. A second time changes nothing."""
        found = self._read(token)
        became = Confirmed.OVER if found is None else self._store.confirm_sign_up(found)
        if found is None or became is Confirmed.OVER:
            return self._bad(request)
        if became is Confirmed.COMPLAINED:
            return self._pages.answer(request, Page.GONE, 409, who=TokenData(found.email))
        return self._pages.answer(request, Page.JOINED, **self._about(found))

    def _is_bot(self, form: Form) -> bool:
        """Filled in what nobody sees, or a time that is not ours; a static form tells none."""
        started = form.get("started", [""])[0].strip()
        is_forged = bool(started) and self._started.read(started) is None
        return is_forged or bool(form.get("website", [""])[0].strip())

    def _is_quick(self, started: str, now: float) -> bool:
        """Mostly a program; but a browser fills in a form in no time, too, so a person may try once more."""
        shown = self._started.read(started) if started else None
        return shown is not None and 0 <= now - shown["at"] < QUICKEST_SECONDS

    def _read(self, token: str) -> Confirmation | None:
        payload = self._links.read_fresh(token, self._store.now(), CONFIRM_SECONDS)
        return None if payload is None else self._mails.confirmation(payload)

    def _about(self, found: Confirmation) -> Mapping[str, Any]:
        """Who, and the lists by the names that they have now."""
        names = {one.key: one.name for one in lists(self._store)}
        named = ", ".join(names.get(key, key) for key in found.lists)
        return {"who": TokenData(found.email), "lists": named}

    def _form(self, request: Request, shown: Sequence[List], status: int = 200, **values: Any) -> Response:
        """What was typed wrong is corrected in a second: the time runs from when the form was first shown."""
        started = values.pop("started", "") or self._started.make({"at": self._store.now()})
        values = {"wrong": "", "email": "", "name": "", "ticked": ()} | values
        return self._pages.show(request, Page.JOIN, status, lists=shown, started=started, **values)

    def _refuse(self, request: Request, open_to_all: Sequence[List], wrong: str, **given: Any) -> Response:
        is_quick = wrong == "join_again"
        request.state.why = f"a sign-up {'at once' if is_quick else 'without an address or a list'}"
        if wants_json(request):
            said = self._pages.spoken(request).pages[wrong]
            return JSONResponse({"error": said}, 400, headers=NO_INDEX | FROM_ANYWHERE)
        return self._form(request, open_to_all, 400, wrong=wrong, **given)

    def _bad(self, request: Request) -> Response:
        request.state.why = "a link to confirm that is not ours, too old or used"
        return self._pages.answer(request, Page.OVER, 400)


Own = Annotated[Joining, own(Joining)]
routes = APIRouter(tags=["joining"])
routes.get("/join", response_model=None, responses=page_or(503))(Joining.form)
routes.head("/join", response_model=None, include_in_schema=False)(Joining.form)
routes.post(
    "/join",
    response_model=None,
    responses=page_or(400, 413, 503),
    openapi_extra=form_of(FIELDS, required=["email"]),
)(Joining.ask)
routes.get("/join/confirm", response_model=None, responses=page_or(400, 503))(Joining.confirm)
routes.post("/join/confirm", response_model=None, responses=page_or(400, 409, 503))(Joining.confirm_now)


def _page(request: Request) -> str | None:
    """Where the form stands, as the browser tells it, without what may be personal in its address."""
    for header in ("referer", "origin"):
        found = split_address(request.headers.get(header, ""))
        if found.scheme in ("http", "https") and found.hostname:
            host = found.netloc.rpartition("@")[2]
            return urlunsplit((found.scheme, host, found.path, "", ""))
    return None
