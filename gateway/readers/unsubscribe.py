"""`/unsubscribe`: one click to unsubscribe, one to come back if it was a mistake."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from gateway.answers import Form, form_of, form_within, page_or, takes_json_alone
from gateway.pages import Page, Pages
from gateway.parts import own
from mailout.base.addresses import address_of
from mailout.base.select import first
from mailout.base.settings import Settings
from mailout.base.signed_links import TokenData, Tokens
from mailout.letters.audience import list_rows, subscriber_rows
from mailout.letters.audience.port import SubscriberColumns
from mailout.letters.content.languages import shipped
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.feedback.port import UNDO_SECONDS
from mailout.store import Store

FORM_BYTES = 4096
KEEP = "keep"
FRESH_MAIL_SECONDS = 86_400.0
"""For which scanners follow the links of a mail."""

Token = Annotated[str, Query(description="`base64url(payload).base64url(HMAC-SHA256(payload))`, unpadded")]
Message = Annotated[str, Query(description="Which message the link stands in, signed; older links lack it")]
FIELDS = {
    "List-Unsubscribe": {"type": "string", "enum": ["One-Click"], "description": "RFC 8058"},
    "action": {"type": "string", "enum": [KEEP], "description": "Undo an unsubscribe"},
}


class LetterLinks:
    """Whom the link of a letter speaks for."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.store = store
        # Without a secret there are no links, so every token is a forgery.
        self.tokens = Tokens(settings.unsubscribe_keys) if settings.unsubscribe_keys else None
        self.pages = Pages(settings)

    def holder(self, token: str) -> TokenData | None:
        """Normalised; None: the token is not ours, or names nobody."""
        data = self.tokens.read(token) if self.tokens is not None else None
        email = address_of(data.email) if data is not None else None
        return TokenData(email, data.list_key) if data is not None and email is not None else None

    def bad(self, request: Request) -> Response:
        request.state.why = "a token that is not ours"
        return self.pages.answer(request, Page.BAD, 400)

    def person(self, who: TokenData) -> SubscriberColumns | None:
        return first(self.store, subscriber_rows.COLUMNS, {"email_norm": who.email})


def chosen_language(person: SubscriberColumns | None) -> str | None:
    """What they have chosen for our pages, or an import knew of them."""
    if person is None:
        return None
    written = str(person["attributes"].get("language") or "").partition("-")[0].lower()
    return written if written in shipped() else None


class Unsubscribing(LetterLinks):
    """What each request comes to, as a page or (`Accept: application/json`) as JSON."""

    def __init__(self, settings: Settings, store: Store) -> None:
        super().__init__(settings, store)
        self._confirm = settings.unsubscribe_confirm

    def unsubscribe(self: Own, request: Request, token: Token = "", m: Message = "") -> Response:
        """Leave, or be asked first (`UNSUBSCRIBE_CONFIRM`): mail scanners follow the links of fresh mail."""
        who = self.holder(token)
        if who is not None and (_is_prefetch(request) or self._must_ask(request, who)):
            return self._answer(request, Page.ASK, who)
        return self._leave(request, who, m)

    def unsubscribe_now(
        self: Own,
        request: Request,
        form: Annotated[Form, form_within(FORM_BYTES)],
        token: Token = "",
        m: Message = "",
    ) -> Response:
        """Leave at once: RFC 8058's one-click form, or the button. With `action=keep`: stay after all."""
        who = self.holder(token)
        if who is not None and form.get("action") == [KEEP]:
            # Letters get forwarded: an old one's link must not bring back who left long ago.
            if self.store.resubscribe(who.email, who.list_key, UNDO_SECONDS):
                return self._answer(request, Page.KEPT, who)
            return self._answer(request, Page.GONE, who, 409)
        return self._leave(request, who, m)

    def _must_ask(self, request: Request, who: TokenData) -> bool:
        """`auto`: where mail went out within a day, since a scanner may read it; none takes JSON alone."""
        if self._confirm != "auto":
            return self._confirm == "true"
        if takes_json_alone(request):
            return False
        return feedback_rows.mailed_since(self.store, who.email, self.store.now() - FRESH_MAIL_SECONDS)

    def _leave(self, request: Request, who: TokenData | None, written: str) -> Response:
        if who is None or self.tokens is None:
            return self.bad(request)
        # A part that was lost or changed keeps nobody from leaving.
        message = self.tokens.read_message(written)
        may_return = self.store.unsubscribe(who.email, who.list_key, message)
        return self._answer(request, Page.LEFT, who, may_return=may_return)

    def _answer(
        self, request: Request, page: Page, who: TokenData, status: int = 200, **values: Any
    ) -> Response:
        """With their list by its name, in the language that they have chosen."""
        of = list_rows.list_or_none(self.store, who.list_key) if who.list_key else None
        named = TokenData(who.email, of.name if of else who.list_key)
        chosen = chosen_language(self.person(who))
        return self.pages.answer(request, page, status, who=named, chosen=chosen, **values)


Own = Annotated[Unsubscribing, own(Unsubscribing)]
routes = APIRouter(tags=["feedback"])
routes.get("/unsubscribe", response_model=None, responses=page_or(400, 503))(Unsubscribing.unsubscribe)
routes.post(
    "/unsubscribe", response_model=None, responses=page_or(400, 409, 413, 503), openapi_extra=form_of(FIELDS)
)(Unsubscribing.unsubscribe_now)


def _is_prefetch(request: Request) -> bool:
    """A browser that fetches what nobody has clicked on yet."""
    words = (request.headers.get(name, "") for name in ("sec-purpose", "purpose", "x-purpose", "x-moz"))
    return any("prefetch" in word.lower() or "preview" in word.lower() for word in words)
