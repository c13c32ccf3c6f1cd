"""`/preferences`: a reader chooses lists, a pause and a language, by the link of any letter.

The link is the unsubscribe token, and letters get forwarded: nothing here shows more than the address, and
what is asked for beyond that is confirmed by a mail. With a `list_key` it governs that list alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gateway.answers import Form, form_of, form_within, page_or
from gateway.pages import Page
from gateway.parts import own
from gateway.readers.own_data import Confirmed, OwnData
from gateway.readers.unsubscribe import LetterLinks, Token, chosen_language
from mailout.base.settings import Settings
from mailout.base.signed_links import TokenData
from mailout.letters.audience import list_rows, subscriber_rows
from mailout.letters.audience.list_rows import GENERAL, List
from mailout.letters.audience.port import Choice, SubscriberColumns, Subscription
from mailout.letters.content.languages import language, shipped
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.feedback.port import UNDO_SECONDS
from mailout.store import Store

FORM_BYTES = 16_384
DAY_SECONDS = 86_400.0
PAUSE_DAYS = (30, 90)
PAUSES = {"end": 0.0} | {str(days): days * DAY_SECONDS for days in PAUSE_DAYS}
FIELDS = {
    "shown": {"type": "array", "items": {"type": "string"}},
    "list": {"type": "array", "items": {"type": "string"}},
    "pause": {"type": "string", "enum": [*PAUSES]},
    "language": {"type": "string"},
    "action": {"type": "string", "enum": [*Confirmed]},
}


class Preferences(LetterLinks):
    """`own_data` is None where no mail could confirm anything: without `PUBLIC_URL`."""

    def __init__(self, settings: Settings, store: Store, own_data: OwnData | None) -> None:
        super().__init__(settings, store)
        self._own_data = own_data
        self._signup = settings.signup
        self._page = f"{(settings.public_url or '').rstrip('/')}/preferences"

    def preferences(self: Own, request: Request, token: Token = "") -> Response:
        """What a reader gets, to choose from. It changes nothing."""
        who = self.holder(token)
        return self.bad(request) if who is None else self._show(request, who, token)

    def choose(
        self: Own, request: Request, form: Annotated[Form, form_within(FORM_BYTES)], token: Token = ""
    ) -> Response:
        """Save a choice, or (`action`) ask for one's data or to be deleted, which a mail confirms."""
        who = self.holder(token)
        if who is None:
            return self.bad(request)
        asked = form.get("action", [""])[0]
        if self._own_data is not None and asked in set(Confirmed):
            return self._confirm_by_mail(request, who, self._own_data, Confirmed(asked))
        return self._save(request, who, token, form)

    def _show(self, request: Request, who: TokenData, token: str, *, saved: bool = False) -> Response:
        person = self.person(who)
        if person is None or person["status"] != "active" or person["complained_at"] is not None:
            return self._no_choice(request, who, person)  # nothing here revives whoever is gone
        chosen = chosen_language(person)
        spoken = self.pages.spoken(request, chosen)
        until = person["snoozed_until"]
        paused = until is not None and until > self.store.now()
        return self.pages.show(
            request,
            Page.CHOOSE,
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
            is_unreachable=False,
        )

    def _save(self, request: Request, who: TokenData, token: str, form: Form) -> Response:
        shown, wanted = set(form.get("shown", ())), set(form.get("list", ()))
        offers = [offer for offer in self._offers(who) if offer[0].key in shown]  # what was not shown stays
        choice = Choice(
            joins={one.key: _wording(one) for one, is_on in offers if one.key in wanted and not is_on},
            source=self._page,
        )
        if who.list_key is None:
            spoken = form.get("language", [None])[0]
            choice = replace(
                choice,
                snooze_seconds=PAUSES.get(form.get("pause", [""])[0]),
                language=spoken if spoken in ("", *shipped()) else None,
            )
        if not self.store.choose(who.email, choice):
            return self._no_choice(request, who, self.person(who), 409)
        for one, is_on in offers:
            if is_on and one.key not in wanted:
                self.store.unsubscribe(who.email, one.key)
        return self._show(request, who, token, saved=True)

    def _confirm_by_mail(
        self, request: Request, who: TokenData, own_data: OwnData, what: Confirmed
    ) -> Response:
        person = self.person(who)
        if person is None or _is_unreachable(person):  # nothing to delete, or no mail would get there
            return self._no_choice(request, who, person)
        chosen = chosen_language(person)
        own_data.mail(
            who.email, what, self.pages.spoken(request, chosen), joined_at=person["created_at"] or 0.0
        )
        return self.pages.show(request, Page.MAILED, chosen=chosen, who=TokenData(who.email))

    def _no_choice(
        self, request: Request, who: TokenData, person: SubscriberColumns | None, status: int = 200
    ) -> Response:
        return self.pages.show(
            request,
            Page.NO_CHOICE,
            status,
            chosen=chosen_language(person),
            who=TokenData(who.email),
            may_join=self._signup and (person is None or person["complained_at"] is None),
            by_mail=self._own_data is not None and person is not None and not _is_unreachable(person),
            is_unreachable=person is not None and _is_unreachable(person),
        )

    def _offers(self, who: TokenData) -> Sequence[tuple[List, bool]]:
        """Public lists, those they are on and those they have just left, and whether they are on; with a
        `list_key`, the one they were sent a letter of."""
        rows = self.store.select(subscriber_rows.SUBSCRIPTIONS, {"email": who.email})
        on = {row["list_key"]: row["unsubscribed_at"] is None for row in rows}
        on.setdefault(GENERAL, True)  # everybody's
        just_left = self._just_left(who.email, rows)
        if who.list_key is None:
            known = list(list_rows.lists(self.store))
            known += [List(key, key) for key in just_left - {one.key for one in known}]  # nobody is on it now
        else:
            known = [list_rows.list_or_none(self.store, who.list_key) or List(who.list_key, who.list_key)]
        found = [one for one in known if one.public or on.get(one.key) or one.key in just_left]
        found.sort(key=lambda one: (one.key != GENERAL, one.name.casefold(), one.key))
        return [(one, on.get(one.key, False)) for one in found]

    def _just_left(self, email: str, rows: Sequence[Subscription]) -> set[str]:
        """Lists that they themselves left within a day: it may have been a mistake. Who joins by the form is
        off the others without an act of theirs."""
        moment = self.store.now() - UNDO_SECONDS
        recent = {row["list_key"] for row in rows if (row["unsubscribed_at"] or 0.0) >= moment}
        if not recent:
            return recent
        recent -= subscriber_rows.unsubscribed_by_hand(self.store, email).keys()
        return recent & feedback_rows.lists_left(self.store, email)


Own = Annotated[Preferences, own(Preferences)]
routes = APIRouter(tags=["readers"])
routes.get("/preferences", response_model=None, responses=page_or(400, 503))(Preferences.preferences)
routes.post(
    "/preferences", response_model=None, responses=page_or(400, 409, 413, 503), openapi_extra=form_of(FIELDS)
)(Preferences.choose)


def _is_unreachable(person: SubscriberColumns) -> bool:
    """Nothing is mailed there any more, not even what they ask for."""
    return person["status"] == "bounced" or person["complained_at"] is not None


def _wording(one: List) -> str:
    """What a reader agrees to."""
    return f"{one.name}: {one.description}" if one.description else one.name
