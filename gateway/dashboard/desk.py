"""What every page works with: the store, the settings, who is signed in, and how acts are let through."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Never
from urllib.parse import quote, unquote, urlsplit

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from gateway.dashboard.checks import Checks
from gateway.dashboard.forms import Form, read_form, read_upload
from gateway.dashboard.sessions import COOKIE, LoginSession, Sessions, SignedOut
from gateway.dashboard.sign_in_links import SignInLinks
from gateway.dashboard.used import UsedPages
from gateway.dashboard.views import HEADERS, Views, go_to
from gateway.prefect_events import Emitter
from gateway.server import site_of
from gateway.wrong_passwords import WrongPasswords
from mailout.base.errors import MailoutError, NotFound, SourceUnavailable, StoreError, UsageError
from mailout.base.settings import Settings
from mailout.insight.doctor.checks import CheckGroup
from mailout.insight.history.port import Act
from mailout.kinds.mailouts.drafts import DraftReader
from mailout.kinds.notifications.port import ProducerQueue
from mailout.outbox.queue.snapshot import QueueForecast
from mailout.store import Store

ONLY_ADMIN = "This is for administrators: editors see letters and send tests."


class EarlyResponse(Exception):
    """Another answer than the page: a way to the login, or a refusal."""

    def __init__(self, response: Response) -> None:
        self.response = response


def _cannot_forget(email_norm: str) -> object:
    raise UsageError("Nobody can be forgotten here.", remedy="Use `mailout subscribers forget`.")


def _no_producer(about: object) -> Never:
    raise SourceUnavailable("No producer's queue is known here.", remedy="Use `mailout notify`.")


@dataclass(frozen=True)
class Tools:
    """What needs more than the store; whoever starts the gateway hands it in."""

    examine: Callable[[], Iterable[CheckGroup]] = tuple  # what `mailout doctor` asks
    forget: Callable[[str], object] = _cannot_forget  # erases a normalised address; NotFound: nobody knows it
    producer_queue: Callable[[str | None], ProducerQueue] = _no_producer  # rows of one status, or of all
    requeue_notification: Callable[[int], object] = _no_producer  # by the number of its row
    run_address: Callable[[str], str | None] = lambda run: None  # where Prefect shows a flow run, by its id
    drafts: DraftReader | None = None  # None: what is written cannot be read here


@dataclass(frozen=True)
class Desk:
    settings: Settings
    store: Store
    queue_forecast: QueueForecast
    zone: tzinfo
    views: Views
    sessions: Sessions
    signed_out: SignedOut
    wrong: WrongPasswords
    used: UsedPages
    checks: Checks
    emitter: Emitter | None = None
    tools: Tools = Tools()
    links: SignInLinks | None = None  # None: nobody signs in by a link

    # ── who ──

    def visitor(self, request: Request, *, admin: bool = False) -> LoginSession:
        session = signed_in(request)
        if session is None:
            raise EarlyResponse(self._to_login(request))
        if admin and not session.is_admin:
            raise EarlyResponse(self.refuse(request, 403, ONLY_ADMIN, session))
        return session

    def _to_login(self, request: Request) -> Response:
        if request.headers.get("hx-request"):  # a part of a page: the whole page has to go there
            return Response(status_code=401, headers={"HX-Redirect": "/login", **HEADERS})
        asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        wanted = f"?next={quote(asked)}" if request.method == "GET" and asked != "/" else ""
        return RedirectResponse(f"/login{wanted}", 303, headers={"Cache-Control": "no-store"})

    def who(self, request: Request, session: LoginSession) -> str:
        return f"{session.name} ({self.site(request)})"

    def site(self, request: Request) -> str:
        return site_of(request.client.host if request.client else None)

    # ── acts ──

    async def acting(
        self, request: Request, *, admin: bool = True, file_bytes: int = 0
    ) -> tuple[LoginSession, Form]:
        """Who acts, and with what: signed in, of the right role, with a form made for this session; where a
        file may come with it, one of so many bytes."""
        session = self.visitor(request, admin=admin)
        if not from_here(request):
            raise EarlyResponse(self.refuse(request, 403, "The request came from another site.", session))
        form = await (read_upload(request, file_bytes) if file_bytes else read_form(request))
        if any("\0" in value for _, value in form.fields):
            said = "A field contains a character that cannot be stored (NUL). Go back and type it again."
            raise EarlyResponse(self.refuse(request, 400, said, session))
        if not _same(form.get("csrf"), session.csrf):
            said = "The form is out of date or not ours. Go back, reload the page, and try again."
            raise EarlyResponse(self.refuse(request, 403, said, session))
        return session, form

    async def do(
        self,
        request: Request,
        session: LoginSession,
        do: Callable[[], object],
        *,
        what: str,
        about: str = "",
        said: str | Callable[[], str],
        back: str,
    ) -> Response:
        """Do it, write down who did it, and say so on the next page; or say there why not. What can only be
        said afterwards is asked for then."""
        try:
            await run_in_threadpool(do)
        except StoreError as error:
            if not isinstance(error, NotFound):
                raise
            return go_to(back, str(error))
        except MailoutError as error:
            return go_to(back, str(error))
        await run_in_threadpool(self.store.write_act, Act(self.who(request, session), what, about))
        return go_to(back, said if isinstance(said, str) else said())

    def refuse(
        self, request: Request, status: int, why: str, session: LoginSession | None = None
    ) -> Response:
        request.state.why = why
        return self.views.page(request, "refused.html.j2", session, status, why=why, title=_TITLES[status])


_TITLES = {400: "Not understood", 403: "Not allowed", 404: "Not found", 503: "Not now"}


def page_route(desk: Desk) -> type[APIRoute]:
    """Routes whose errors are pages, not JSON."""

    def look(request: Request) -> None:
        desk.used.look()
        if desk.signed_out.has(request.state.session):
            request.state.session = None

    class PageRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def handler(request: Request) -> Response:
                request.state.session = desk.sessions.read(request.cookies.get(COOKIE))
                return with_secure_cookies(request, await answered(request))

            async def answered(request: Request) -> Response:
                try:
                    if request.state.session is not None:
                        await run_in_threadpool(look, request)
                    if "\0" in unquote(f"{request.url.path}?{request.url.query}"):
                        return desk.refuse(request, 404, "There is no such page.")
                    return await handle(request)
                except EarlyResponse as early:
                    return early.response
                except NotFound as error:
                    return desk.refuse(request, 404, str(error), signed_in(request))
                except StoreError as error:
                    request.state.why = str(error)
                    said = "The store does not answer just now. Try again in a moment."
                    return desk.refuse(request, 503, said, signed_in(request))

            return handler

    return PageRoute


def signed_in(request: Request) -> LoginSession | None:
    """Whose request it is, as `page_route` found."""
    found: LoginSession | None = request.state.session
    return found


def from_here(request: Request) -> bool:
    """Whether a form was sent from one of our own pages, as far as the browser tells."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    return origin in (None, "null") or urlsplit(origin).netloc == request.headers.get("host")


def with_secure_cookies(request: Request, response: Response) -> Response:
    """Over TLS no cookie of ours ever goes over plain HTTP. A proxy that is not trusted may say so, too: they
    only get stricter."""
    said = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip()
    if "https" in (request.url.scheme, said):
        response.raw_headers = [
            (name, value + b"; Secure" if name == b"set-cookie" else value)
            for name, value in response.raw_headers
        ]
    return response


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())
