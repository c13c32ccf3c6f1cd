"""The queue over HTTP: how it stands, once, as a stream or for Prometheus, and what a person can do with a
mailout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.responses import StreamingResponse
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from gateway.access import Refused, WrongTokens, given, token_needed
from gateway.answers import MAX_BODY, MAX_SMALL_BODY, body_of, errors, read_body
from gateway.stream import STREAM_POLL_SECONDS, Stream
from mailout.base.errors import MailoutError, NotFound, StoreUnavailable
from mailout.base.settings import Settings
from mailout.insight.metrics.scrape import scrape
from mailout.insight.reporting.queue_json import mailout_dict, snapshot_dict
from mailout.letters.content.port import Kind
from mailout.outbox.delivery.protocol import Timing
from mailout.outbox.queue import actions
from mailout.outbox.queue.actions import SettleVerdict
from mailout.outbox.queue.snapshot import QueueForecast
from mailout.store import Store

Id = Annotated[str, Path(description="The mailout's id, as the poll shows it")]

REFUSALS = errors(401, 403, 429, 503)
ACT_REFUSALS = REFUSALS | errors(404, 409)


class Pause(BaseModel):
    note: str | None = Field(None, max_length=500, description="Why, for whoever comes to resume it")


class Settle(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    verdict: SettleVerdict = Field(alias="as", description="What became of them; `pending` sends them again")
    messages: list[str] | None = Field(None, description="Only these, by their ids; none: all in doubt")


def router(
    settings: Settings,
    store: Store,
    queue_forecast: QueueForecast,
    wrong: WrongTokens,
    *,
    every: float = STREAM_POLL_SECONDS,
) -> APIRouter:
    """All of it needs `API_TOKEN`."""
    routes = APIRouter(tags=["queue"], dependencies=[Depends(token_needed(settings, wrong))])
    stream = Stream(lambda: snapshot_dict(queue_forecast.snapshot()), every=every)

    @routes.get("/mail/progress/poll", include_in_schema=False)
    @routes.get("/mail/progress/poll/", responses=REFUSALS)
    def poll() -> dict[str, Any]:
        """What is being sent, what waits and why, and when it will be done."""
        return snapshot_dict(queue_forecast.snapshot())

    @routes.get("/mail/progress/stream", responses=REFUSALS, response_class=StreamingResponse)
    async def watch() -> StreamingResponse:
        """The poll's answer as server-sent events (`event: progress`), whenever it has changed."""
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(stream.events(), media_type="text/event-stream", headers=headers)

    @routes.get("/metrics", tags=["metrics"], responses=REFUSALS, response_class=Response)
    def metrics() -> Response:
        """Counters and gauges in Prometheus's text format."""
        text = scrape(store, scope=queue_forecast.scope, rate=queue_forecast.rate)
        return Response(text, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    def act(id: str, do: Callable[[], object]) -> dict[str, Any]:
        try:
            do()
        except NotFound as error:
            raise Refused(404, str(error)) from error
        except StoreUnavailable:
            raise
        except MailoutError as error:
            raise Refused(409, str(error)) from error
        mailout = store.mailout(id)
        if mailout.kind is Kind.NOTION:
            store.ask_report(id)  # its page is updated by the next run of the queue
        return mailout_dict(mailout, queue_forecast.forecast(id))

    @routes.post("/mailouts/{id}/cancel", responses=ACT_REFUSALS)
    def cancel(id: Id) -> dict[str, Any]:
        """Cancel it. Mail already sent stays sent; nobody else gets it, and it cannot be resumed."""
        return act(id, lambda: actions.cancel(store, id))

    @routes.post("/mailouts/{id}/pause", responses=ACT_REFUSALS, openapi_extra=body_of(Pause, required=False))
    async def pause(request: Request, id: Id) -> dict[str, Any]:
        """Hold it until somebody resumes it. Messages that are being sent are finished."""
        raw = await read_body(request, MAX_SMALL_BODY)
        why = given(Pause, raw).note if raw.strip() not in (b"", b"null") else None
        return await run_in_threadpool(act, id, lambda: actions.pause(store, id, why))

    @routes.post("/mailouts/{id}/resume", responses=ACT_REFUSALS)
    def resume(id: Id) -> dict[str, Any]:
        """Let it go on, whatever it waited for; the queue continues it within seconds."""
        return act(id, lambda: actions.resume(store, id))

    @routes.post("/mailouts/{id}/retry", responses=ACT_REFUSALS)
    def retry(id: Id) -> dict[str, Any]:
        """Try its failed messages again, and no others."""
        return act(id, lambda: actions.retry(store, id))

    @routes.post("/mailouts/{id}/settle", responses=ACT_REFUSALS, openapi_extra=body_of(Settle))
    async def settle(request: Request, id: Id) -> dict[str, Any]:
        """Say what became of messages that were handed over and never answered for."""
        word = given(Settle, await read_body(request, MAX_BODY))
        timing = Timing.of(settings.lock_seconds)
        return await run_in_threadpool(
            act, id, lambda: actions.settle(store, id, word.verdict, timing, word.messages)
        )

    return routes
