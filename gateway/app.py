"""The gateway, put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp

from gateway import api, articles, media, progress, requests, ses_events
from gateway.access import ApiToken, Refused, WrongTokens
from gateway.answers import Health, Held, errors, reads_pages, what_is_wrong
from gateway.api.models import TOKENS
from gateway.api.problems import ApiProblem, answer_problem
from gateway.dashboard import router as dashboard
from gateway.dashboard.desk import Desk, Tools
from gateway.edge import ANSWER_SECONDS, Edge
from gateway.pages import Pages
from gateway.prefect_events import Emitter
from gateway.readers import join, own_data, preferences, unsubscribe, web_archive
from gateway.refusals import RefusalLog, RefusedWebhooks
from gateway.watch import Watch
from gateway.wrong_passwords import WrongPasswords
from mailout.base.errors import StoreError
from mailout.base.settings import Settings
from mailout.insight.reporting.queue_json import single_mails_dict
from mailout.kinds.single_mails.single_mails import Code
from mailout.outbox.queue.snapshot import QueueForecast
from mailout.store import Store

EMIT_SECONDS = 30.0
"""For the watch's event, a few answers of Prefect's server."""
API_CODES = {
    400: Code.INVALID_PAYLOAD,
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: Code.INVALID_PAYLOAD,
    429: "RATE_LIMITED",
    503: "UNAVAILABLE",
}
"""What the API says for a refusal that is not its own."""
API_DETAILS = {
    404: "There is nothing at this address. GET /openapi.json has those that there are.",
    405: "This address takes other methods: the header Allow names them.",
}
"""Where the framework has a word alone."""


class _App(FastAPI):
    answer_seconds = ANSWER_SECONDS
    refused_webhooks: RefusedWebhooks | None = None

    def build_middleware_stack(self) -> ASGIApp:
        """The edge is outside of all that the framework has, its answer to an exception included."""
        app = super().build_middleware_stack()
        return Edge(app, self.state.pages, RefusalLog(), self.refused_webhooks, self.answer_seconds)

    def openapi(self) -> dict[str, Any]:
        """With the tokens of `/v1`: the framework knows only those that it checks itself."""
        document = super().openapi()
        document["components"]["securitySchemes"] |= TOKENS
        return document


def create_app(
    settings: Settings,
    store: Store,
    queue_forecast: QueueForecast,
    *,
    certificates: ses_events.Certificates,
    confirm: Callable[[str, str], None],
    emitter: Emitter | None = None,
    page_lookup: requests.PageLookup | None = None,
    tools: Tools | None = None,
    answer_seconds: float = ANSWER_SECONDS,
    watch: Watch | None = None,
) -> FastAPI:
    """`certificates` and `confirm(topic, token)` are SNS's; `emitter` tells Prefect, if there is one; with
    `page_lookup` a page that is not there is refused at once; `tools` are the dashboard's; `watch` tells
    Prefect what waits."""

    refused = RefusedWebhooks(store)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if emitter is not None and watch is not None:
            watch.start(partial(_from_a_thread, asyncio.get_running_loop(), emitter))
        yield
        if watch is not None:
            await run_in_threadpool(watch.stop)
        await refused.close()
        if emitter is not None:
            await emitter.close()

    app = _App(
        title="mailout gateway",
        summary="What comes back to mailout (SES's events, unsubscribes), its mails' pictures, its queue.",
        version="1",
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # such a redirect would lead to whatever host the request names
        lifespan=lifespan,
    )
    app.answer_seconds = answer_seconds
    app.refused_webhooks = refused
    app.state.pages = Pages(settings)
    wrong, wrong_passwords = WrongTokens(), WrongPasswords()
    tools = tools or Tools()
    data = None  # without an address and a secret there are no links to mail
    if settings.public_url and settings.unsubscribe_keys:
        data = own_data.OwnData(settings, store, tools.forget)
    served = [
        (ses_events, ses_events.SesEvents(settings, store, certificates, confirm, emitter)),
        (requests, requests.Requests(settings, store, emitter, wrong, page_lookup)),
        (articles, articles.ArticleApi(settings, store, emitter, wrong_passwords)),
        (unsubscribe, unsubscribe.Unsubscribing(settings, store)),
        *([(join, join.Joining(settings, store))] if settings.signup else []),
        (preferences, preferences.Preferences(settings, store, data)),
        *([(own_data, data)] if data else []),
        (web_archive, web_archive.WebArchive(settings, store)),
        *api.served(settings, store, wrong, queue_forecast.limits),
        (media, media.Media(settings.mailout_home / "media")),
        (progress, progress.QueueOverHttp(settings, store, queue_forecast)),
    ]
    app.state.parts = {type(part): part for _, part in served}
    app.state.parts[ApiToken] = ApiToken(settings.api_token, wrong)
    app.state.desk = Desk(settings, store, queue_forecast, emitter, wrong_passwords, tools)
    for module, _ in served:
        app.router.routes += module.routes.routes  # `include_router` would examine each a second time
    app.router.routes += dashboard.routes

    @app.head("/health", include_in_schema=False, response_model_exclude_none=True)
    @app.get("/health", tags=["health"], responses=errors(503), response_model_exclude_none=True)
    def health() -> Health:
        """Whether the gateway can do its work: the store answers. It also says that single mails wait."""
        store.check()
        waiting = store.single_mails_waiting(rehearsal=queue_forecast.rehearses)
        held = single_mails_dict(waiting)
        return Health(ok=True, single_mails=Held(**held) if held else None)

    app.add_exception_handler(ApiProblem, answer_problem)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _misunderstood)
    app.add_exception_handler(StoreError, _store_failed)
    app.add_exception_handler(Exception, _failed)
    return app


def _from_a_thread(
    loop: asyncio.AbstractEventLoop, emitter: Emitter, event: str, payload: Mapping[str, object]
) -> bool:
    """Whether Prefect took it. False, too, if the gateway is about to end."""
    try:
        return asyncio.run_coroutine_threadsafe(emitter.post(event, payload), loop).result(EMIT_SECONDS)
    except (TimeoutError, CancelledError, RuntimeError):
        return False


async def _refused(request: Request, error: Any) -> Response:
    """The API's callers get a problem; those whom the reason concerns get it, all others a word."""
    if error.status_code == 405:
        error.headers = {"Allow": _methods_at(request)}
    if error.status_code in API_CODES and request.url.path.startswith("/v1/"):
        code = API_CODES[error.status_code]
        detail = API_DETAILS.get(error.status_code, error.detail)
        problem = ApiProblem(error.status_code, code, detail, headers=error.headers)
        return await answer_problem(request, problem)
    if isinstance(error, Refused):
        request.state.why = error.detail
        return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)
    return _refusal(request, error.status_code, error.headers)


def _methods_at(request: Request) -> str:
    """Of all routes with this address: the framework tells those of the first."""
    there = (route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE)
    return ", ".join(sorted({method for route in there for method in getattr(route, "methods", None) or ()}))


def _refusal(request: Request, status: int, headers: Mapping[str, str] | None = None) -> Response:
    pages: Pages = request.app.state.pages
    return pages.refusal(request, status, headers)


async def _misunderstood(request: Request, error: Any) -> Response:
    """A wrong part of an address. What is told of it came with the request: nothing of it is ours."""
    request.state.why = what_is_wrong(error.errors())
    if reads_pages(request):
        return _refusal(request, 422)
    return JSONResponse({"error": request.state.why}, 422)


async def _store_failed(request: Request, error: Exception) -> Response:
    """Whoever asks should ask again: SNS does so by itself."""
    request.state.why = str(error)
    later = HTTPException(503, "Nothing was taken in.", headers={"Retry-After": "10"})
    return await _refused(request, later)


async def _failed(request: Request, error: Exception) -> Response:
    return _refusal(request, 500)  # starlette raises it again for the log
