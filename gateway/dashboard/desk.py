"""What every page works with: the store, the settings, who is signed in, and how acts are let through."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Never
from urllib.parse import quote, unquote, urlsplit
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from gateway.access import site_in
from gateway.dashboard.checks import Checks
from gateway.dashboard.forms import Form, KeptFiles, read_form, read_upload
from gateway.dashboard.sessions import COOKIE, LoginSession, Sessions, SignedOut
from gateway.dashboard.sign_in_links import SignInLinks, people_of
from gateway.dashboard.views import HEADERS, UsedPages, Views, go_to
from gateway.prefect_events import Emitter
from gateway.stream import Stream
from gateway.wrong_passwords import WrongPasswords
from mailout.base.errors import (
    MailoutError,
    NotFound,
    SourceUnavailable,
    StoreError,
    StoreUnavailable,
    UsageError,
)
from mailout.base.settings import Settings
from mailout.insight.doctor.checks import CheckGroup
from mailout.insight.history.history_rows import ACT_TABLE
from mailout.insight.history.port import Act
from mailout.insight.reporting.queue_json import snapshot_dict
from mailout.kinds.mailouts.drafts import DraftReader
from mailout.kinds.notifications.port import ProducerQueue
from mailout.letters.content.refs import split_address
from mailout.outbox.queue import queue_rows
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


class Desk:
    """One for the whole gateway, as `app.state.desk`."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        queue_forecast: QueueForecast,
        emitter: Emitter | None,
        wrong: WrongPasswords,
        tools: Tools,
    ) -> None:
        self.settings = settings
        self.store = store
        self.queue_forecast = queue_forecast
        self.emitter = emitter
        self.wrong = wrong
        self.tools = tools
        self.rehearses = queue_forecast.rehearses
        # Where nothing leaves the machine, rehearsals are the letters.
        self.modes: Sequence[str] = ("real", "rehearsal") if self.rehearses else ("real",)
        self.zone = ZoneInfo(settings.send_timezone)
        self.used = UsedPages(settings, store, self.modes, rehearses=self.rehearses)
        self.views = Views(self.zone, settings.org_name, rehearses=self.rehearses, more_pages=self.used.menu)
        self.links: SignInLinks | None = None  # nobody signs in by a link
        if people_of(settings):
            self.links = SignInLinks(settings, store, rehearses=self.rehearses, emitter=emitter)
        self.sessions = Sessions(
            settings.admin_password,
            settings.editor_password,
            people=self.links.people if self.links else None,
            secrets=settings.unsubscribe_keys[:1],  # what lasts hours needs no older one
        )
        self.signed_out = SignedOut(store)
        self.checks = Checks(tools.examine, store.now)
        self.uploads = KeptFiles(settings.mailout_home / "imports")
        self.stream = Stream(self._moved)

    def _moved(self) -> dict[str, str]:
        """That something has changed is enough: nothing of the queue is sent along."""
        found = snapshot_dict(self.queue_forecast.snapshot())
        found.pop("as_of")
        text = json.dumps(found, sort_keys=True, default=str)
        return {"seen": hashlib.sha256(text.encode()).hexdigest()[:16]}

    def soon(self) -> str:
        """When the queue goes on."""
        return (
            "once everything is resumed on Home" if queue_rows.all_paused(self.store) else "within a minute"
        )

    def closed(self, request: Request) -> Response:
        """Nobody can sign in: how to change that."""
        return self.views.page(request, "closed.html.j2", status=403)

    def refuse(
        self, request: Request, status: int, why: str, session: LoginSession | None = None
    ) -> Response:
        request.state.why = why
        return self.views.page(request, "refused.html.j2", session, status, why=why, title=_TITLES[status])


_TITLES = {400: "Not understood", 403: "Not allowed", 404: "Not found", 503: "Not now"}


@dataclass
class Visit:
    """Somebody who is signed in asks for a page."""

    desk: Desk
    request: Request
    session: LoginSession

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        return self.desk.views.page(self.request, template, self.session, status, **values)

    @property
    def who(self) -> str:
        return f"{self.session.name} ({site_in(self.request)})"


@dataclass
class Action(Visit):
    """They act, with a form made for this session."""

    form: Form

    def back_to(self, path: str) -> None:
        """The page that follows. From here on, why something cannot be done is said there."""
        self.request.state.back = path

    def done(self, what: str, about: str, said: str) -> Response:
        """Write down who did it, and say so on the next page."""
        self.desk.store.put(ACT_TABLE, [Act(self.who, what, about)])
        return go_to(self.request.state.back, said)


async def _visit(request: Request) -> Visit:
    desk: Desk = request.app.state.desk
    session = signed_in(request)
    if session is None:
        raise EarlyResponse(_to_login(request) if desk.sessions.open else desk.closed(request))
    return Visit(desk, request, session)


Visitor = Annotated[Visit, Depends(_visit)]


async def _admin_visit(visit: Visitor) -> Visit:
    if not visit.session.is_admin:
        raise EarlyResponse(visit.desk.refuse(visit.request, 403, ONLY_ADMIN, visit.session))
    return visit


Admin = Annotated[Visit, Depends(_admin_visit)]


async def read_act(visit: Visit, file_bytes: int = 0) -> Action:
    """Where a file may come with the form, one of so many bytes."""

    def refused(status: int, said: str) -> EarlyResponse:
        return EarlyResponse(visit.desk.refuse(visit.request, status, said, visit.session))

    if not from_here(visit.request):
        raise refused(403, "The request came from another site.")
    form = await (read_upload(visit.request, file_bytes) if file_bytes else read_form(visit.request))
    if any("\0" in value for _, value in form.fields):
        raise refused(
            400, "A field contains a character that cannot be stored (NUL). Go back and type it again."
        )
    if not hmac.compare_digest(form.get("csrf").encode(), visit.session.csrf.encode()):
        raise refused(403, "The form is out of date or not ours. Go back, reload the page, and try again.")
    return Action(visit.desk, visit.request, visit.session, form)


async def _any_act(visit: Visitor) -> Action:
    return await read_act(visit)


async def _admin_act(visit: Admin) -> Action:
    return await read_act(visit)


AnyAct = Annotated[Action, Depends(_any_act)]
AdminAct = Annotated[Action, Depends(_admin_act)]


def page_routes() -> APIRouter:
    return APIRouter(include_in_schema=False, route_class=PageRoute)


class PageRoute(APIRoute):
    """Its errors are pages, not JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            desk: Desk = request.app.state.desk
            request.state.session = desk.sessions.read(request.cookies.get(COOKIE))
            request.state.back = ""
            return with_secure_cookies(request, await answered(desk, request), desk.settings.public_url)

        async def answered(desk: Desk, request: Request) -> Response:
            try:
                if request.state.session is not None:
                    await run_in_threadpool(_look, desk, request)
                if "\0" in unquote(f"{request.url.path}?{request.url.query}"):
                    return desk.refuse(request, 404, "There is no such page.")
                return await handle(request)
            except EarlyResponse as early:
                return early.response
            except MailoutError as error:
                return _instead(desk, request, error)

        return handler


def _look(desk: Desk, request: Request) -> None:
    desk.used.look()
    if desk.signed_out.has(request.state.session):
        request.state.session = None


def _instead(desk: Desk, request: Request, error: MailoutError) -> Response:
    """What is shown after an error; one that nobody foresaw is raised again."""
    refused = isinstance(error, NotFound) or (request.state.back and not isinstance(error, StoreUnavailable))
    if isinstance(error, StoreError) and not refused:
        said = "The store does not answer just now. Try again in a moment."
        response = desk.refuse(request, 503, said, signed_in(request))
        request.state.why = str(error)
        return response
    # Of what is not there, a command would show more; here are pages for that.
    names_command = isinstance(error, NotFound) and "`" in (error.remedy or "")
    said = error.message if names_command else str(error)
    if request.state.back:
        return go_to(request.state.back, said)
    if isinstance(error, NotFound):
        return desk.refuse(request, 404, said, signed_in(request))
    raise error


def _to_login(request: Request) -> Response:
    """And back afterwards to the page where they are, or that they asked for."""
    is_part, is_form = "hx-request" in request.headers, request.method != "GET"
    page = split_address(request.headers.get("hx-current-url" if is_part else "referer", ""))
    if not (is_part or is_form):
        page = split_address(str(request.url))
    elif page.netloc != request.headers.get("host"):
        page = split_address("")
    asked = page.path + (f"?{page.query}" if page.query else "")
    address = f"/login?next={quote(asked)}" if asked not in ("", "/") else "/login"
    if is_part:  # the whole page has to go there
        return Response(status_code=401, headers={"HX-Redirect": address, **HEADERS})
    return go_to(address, "Your session has ended: what you sent was not saved." if is_form else "")


def signed_in(request: Request) -> LoginSession | None:
    """Whose request it is, as `PageRoute` found."""
    found: LoginSession | None = request.state.session
    return found


def from_here(request: Request) -> bool:
    """Whether a form was sent from one of our own pages, as far as the browser tells. A proxy may keep `Host`
    to itself: `PUBLIC_URL` is ours, too."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    if origin in (None, "null") or split_address(origin).netloc == request.headers.get("host"):
        return True
    public = urlsplit(request.app.state.desk.settings.public_url or "")
    return bool(public.netloc) and origin == f"{public.scheme}://{public.netloc}"


def with_secure_cookies(request: Request, response: Response, public_url: str | None) -> Response:
    """Over TLS no cookie of ours ever goes over plain HTTP. A proxy that is not trusted may say so, too, and
    one that says nothing is known by its address, `PUBLIC_URL`: they only get stricter."""
    said = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip()
    public = urlsplit(public_url or "")
    is_public = public.netloc == request.headers.get("host") and public.scheme
    if "https" in (request.url.scheme, said, is_public):
        response.raw_headers = [
            (name, value + b"; Secure" if name == b"set-cookie" else value)
            for name, value in response.raw_headers
        ]
    return response
