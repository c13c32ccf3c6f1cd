"""`/preferences`: a reader chooses lists, a pause and a language, by the link of any letter.

The link is the unsubscribe token, and letters get forwarded: nothing here shows more than the address, and
what is asked for beyond that is confirmed by a mail. With a `list_key` it governs that list alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from gateway.answers import errors, read_body
from gateway.pages import Page, Pages
from gateway.readers.own_data import Confirmed, OwnData
from gateway.readers.unsubscribe import Token, chosen_language, holder_of
from mailout.base.select import first
from mailout.base.settings import Settings
from mailout.base.signed_links import TokenData, Tokens
from mailout.letters.audience import list_rows, subscriber_rows
from mailout.letters.audience.list_rows import GENERAL, List
from mailout.letters.audience.port import Choice, SubscriberColumns
from mailout.letters.content.from_settings import brand_of
from mailout.letters.content.languages import language, shipped
from mailout.store import Store

MAX_FORM_BYTES = 16_384
DAY_SECONDS = 86_400.0
PAUSE_DAYS = (30, 90)
PAUSES = {"end": 0.0} | {str(days): days * DAY_SECONDS for days in PAUSE_DAYS}
PAGE: dict[int | str, dict[str, Any]] = {200: {"content": {"text/html": {}}, "description": "A page"}}
FORM = {
    "requestBody": {
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "shown": {"type": "array", "items": {"type": "string"}},
                        "list": {"type": "array", "items": {"type": "string"}},
                        "pause": {"type": "string", "enum": [*PAUSES]},
                        "language": {"type": "string"},
                        "action": {"type": "string", "enum": [*Confirmed]},
                    },
                }
            }
        }
    }
}


def router(settings: Settings, store: Store, own_data: OwnData | None) -> APIRouter:
    """`own_data` is None where no mail could confirm anything: without `PUBLIC_URL`."""
    routes = APIRouter(tags=["readers"])
    desk = _Preferences(settings, store, own_data)

    @routes.get("/preferences", response_model=None, responses={**PAGE, **errors(400, 503)})
    async def preferences(request: Request, token: Token = "") -> Response:
        """What a reader gets, to choose from. It changes nothing."""
        who = desk.who(token)
        return desk.bad(request) if who is None else await run_in_threadpool(desk.show, request, who, token)

    @routes.post(
        "/preferences",
        response_model=None,
        responses={**PAGE, **errors(400, 409, 413, 503)},
        openapi_extra=FORM,
    )
    async def choose(request: Request, token: Token = "") -> Response:
        """Save a choice, or (`action`) ask for one's data or to be deleted, which a mail confirms."""
        form = parse_qs((await read_body(request, MAX_FORM_BYTES)).decode("utf-8", "replace"))
        who = desk.who(token)
        if who is None:
            return desk.bad(request)
        asked = form.get("action", [""])[0]
        if own_data is not None and asked in set(Confirmed):
            return await desk.confirm_by_mail(request, who, own_data, Confirmed(asked))
        return await run_in_threadpool(desk.choose, request, who, token, form)

    return routes


@dataclass(frozen=True, slots=True)
class Offer:
    """A list that a reader may choose, and whether they are on it."""

    key: str
    name: str
    description: str
    is_on: bool

    @property
    def wording(self) -> str:
        """What they agree to."""
        return f"{self.name}: {self.description}" if self.description else self.name


class _Preferences:
    def __init__(self, settings: Settings, store: Store, own_data: OwnData | None) -> None:
        self._store = store
        self._own_data = own_data
        self._signup = settings.signup
        self._tokens = Tokens(settings.unsubscribe_keys) if settings.unsubscribe_keys else None
        self._page = f"{(settings.public_url or '').rstrip('/')}/preferences"
        self._pages = pages_of(settings)

    def who(self, token: str) -> TokenData | None:
        return holder_of(self._tokens, token)

    def bad(self, request: Request) -> Response:
        request.state.why = "a token that is not ours"
        return self._pages.show(Page.BAD, 400, accept_language=accepted(request))

    def show(self, request: Request, who: TokenData, token: str, *, saved: bool = False) -> Response:
        person = known_person(self._store, who.email)
        if person is None or not _may_choose(person):
            return self._no_choice(request, who, person)
        chosen = chosen_language(person)
        spoken = self._pages.spoken(accepted(request), chosen)
        until = person["snoozed_until"]
        paused = until is not None and until > self._store.now()
        return self._pages.show(
            Page.CHOOSE,
            accept_language=accepted(request),
            chosen=chosen,
            who=TokenData(who.email),
            token=token,
            saved=saved,
            offers=self._offers(who),
            is_one_list=who.list_key is not None,
            paused_until=spoken.day(datetime.fromtimestamp(until, UTC).date()) if paused and until else "",
            pause_days=PAUSE_DAYS,
            languages=[(code, language(code).pages["language_name"]) for code in shipped()],
            own_language=chosen or "",
            by_mail=self._own_data is not None,
        )

    def choose(self, request: Request, who: TokenData, token: str, form: dict[str, list[str]]) -> Response:
        shown, wanted = set(form.get("shown", ())), set(form.get("list", ()))
        offers = [one for one in self._offers(who) if one.key in shown]  # what the page did not show stays
        choice = Choice(
            joins={one.key: one.wording for one in offers if one.key in wanted and not one.is_on},
            source=self._page,
        )
        if who.list_key is None:
            spoken = form.get("language", [None])[0]
            choice = replace(
                choice,
                snooze_seconds=PAUSES.get(form.get("pause", [""])[0]),
                language=spoken if spoken in ("", *shipped()) else None,
            )
        if not self._store.choose(who.email, choice):
            return self._no_choice(request, who, known_person(self._store, who.email), 409)
        for one in offers:
            if one.is_on and one.key not in wanted:
                self._store.unsubscribe(who.email, one.key)
        return self.show(request, who, token, saved=True)

    async def confirm_by_mail(
        self, request: Request, who: TokenData, own_data: OwnData, what: Confirmed
    ) -> Response:
        person = await run_in_threadpool(known_person, self._store, who.email)
        if person is None:  # nothing to show, nothing to delete, and no mail to a stranger
            return self._no_choice(request, who, None)
        chosen = chosen_language(person)
        spoken = self._pages.spoken(accepted(request), chosen)
        await own_data.send(who.email, what, spoken)
        shown = TokenData(who.email)
        return self._pages.show(Page.MAILED, accept_language=accepted(request), chosen=chosen, who=shown)

    def _no_choice(
        self, request: Request, who: TokenData, person: SubscriberColumns | None, status: int = 200
    ) -> Response:
        return self._pages.show(
            Page.NO_CHOICE,
            status,
            accept_language=accepted(request),
            chosen=person and chosen_language(person),
            who=TokenData(who.email),
            may_join=self._signup and (person is None or person["complained_at"] is None),
            by_mail=self._own_data is not None and person is not None,
        )

    def _offers(self, who: TokenData) -> Sequence[Offer]:
        """Public lists and those they are on; with a `list_key`, the one they were sent a letter of."""
        rows = self._store.select(subscriber_rows.SUBSCRIPTIONS, {"email": who.email})
        on = {row["list_key"]: row["unsubscribed_at"] is None for row in rows}
        on.setdefault(GENERAL, True)  # everybody's
        if who.list_key is None:
            found = [one for one in list_rows.lists(self._store) if one.public or on.get(one.key)]
        else:
            key = who.list_key
            one = list_rows.list_or_none(self._store, key) or List(key, key)
            found = [one] if one.public or key in on else []
        offers = [Offer(one.key, one.name, one.description, on.get(one.key, False)) for one in found]
        return sorted(offers, key=lambda one: (one.key != GENERAL, one.name.casefold(), one.key))


def pages_of(settings: Settings) -> Pages:
    write_to = settings.reply_to or settings.from_email
    return Pages(settings.org_name, settings.org_address, write_to, brand_of(settings))


def _may_choose(person: SubscriberColumns) -> bool:
    """Nothing here revives whoever is gone."""
    return person["status"] == "active" and person["complained_at"] is None


def known_person(store: Store, email: str) -> SubscriberColumns | None:
    return first(store, subscriber_rows.COLUMNS, {"email_norm": email})


def accepted(request: Request) -> str:
    return request.headers.get("accept-language", "")
