"""The queue over HTTP: how it stands, once, as a stream or for Prometheus, and what a person can do with a
mailout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import StreamingResponse
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from gateway.access import TOKEN_NEEDED, Refused, given
from gateway.answers import MAX_BODY, MAX_SMALL_BODY, body_of, errors, read_body
from gateway.parts import own
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


class QueueOverHttp:
    """All of it needs `API_TOKEN`."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        queue_forecast: QueueForecast,
        every: float = STREAM_POLL_SECONDS,
    ) -> None:
        self._timing = Timing.of(settings.lock_seconds)
        self._store = store
        self._forecast = queue_forecast
        self._stream = Stream(lambda: snapshot_dict(queue_forecast.snapshot()), every=every)

    def poll(self: Own) -> dict[str, Any]:
        """What is being sent, what waits and why, and when it will be done."""
        return snapshot_dict(self._forecast.snapshot())

    async def watch(self: Own) -> StreamingResponse:
        """The poll's answer as server-sent events (`event: progress`), whenever it has changed."""
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(self._stream.events(), media_type="text/event-stream", headers=headers)

    def metrics(self: Own) -> Response:
        """Counters and gauges in Prometheus's text format."""
        text = scrape(self._store, scope=self._forecast.scope, rate=self._forecast.rate)
        return Response(text, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    def cancel(self: Own, id: Id) -> dict[str, Any]:
        """Cancel it. Mail already sent stays sent; nobody else gets it, and it cannot be resumed."""
        return self._act(id, lambda: actions.cancel(self._store, id))

    async def pause(self: Own, request: Request, id: Id) -> dict[str, Any]:
        """Hold it until somebody resumes it. Messages that are being sent are finished."""
        raw = await read_body(request, MAX_SMALL_BODY)
        why = given(Pause, raw).note if raw.strip() not in (b"", b"null") else None
        return await run_in_threadpool(self._act, id, lambda: actions.pause(self._store, id, why))

    def resume(self: Own, id: Id) -> dict[str, Any]:
        """Let it go on, whatever it waited for; the queue continues it within seconds."""
        return self._act(id, lambda: actions.resume(self._store, id))

    def retry(self: Own, id: Id) -> dict[str, Any]:
        """Try its failed messages again, and no others."""
        return self._act(id, lambda: actions.retry(self._store, id))

    async def settle(self: Own, request: Request, id: Id) -> dict[str, Any]:
        """Say what became of messages that were handed over and never answered for."""
        word = given(Settle, await read_body(request, MAX_BODY))
        return await run_in_threadpool(
            self._act, id, lambda: actions.settle(self._store, id, word.verdict, self._timing, word.messages)
        )

    def _act(self, id: str, do: Callable[[], object]) -> dict[str, Any]:
        try:
            do()
        except NotFound as error:
            raise Refused(404, str(error)) from error
        except StoreUnavailable:
            raise
        except MailoutError as error:
            raise Refused(409, str(error)) from error
        mailout = self._store.mailout(id)
        if mailout.kind is Kind.NOTION:
            self._store.ask_report(id)  # its page is updated by the next run of the queue
        return mailout_dict(mailout, self._forecast.forecast(id))


Own = Annotated[QueueOverHttp, own(QueueOverHttp)]
routes = APIRouter(tags=["queue"], dependencies=[TOKEN_NEEDED])
routes.get("/mail/progress/poll", include_in_schema=False)(QueueOverHttp.poll)
routes.get("/mail/progress/poll/", responses=REFUSALS)(QueueOverHttp.poll)
routes.get("/mail/progress/stream", responses=REFUSALS, response_class=StreamingResponse)(QueueOverHttp.watch)
routes.get("/metrics", tags=["metrics"], responses=REFUSALS, response_class=Response)(QueueOverHttp.metrics)
routes.post("/mailouts/{id}/cancel", responses=ACT_REFUSALS)(QueueOverHttp.cancel)
routes.post("/mailouts/{id}/pause", responses=ACT_REFUSALS, openapi_extra=body_of(Pause, required=False))(
    QueueOverHttp.pause
)
routes.post("/mailouts/{id}/resume", responses=ACT_REFUSALS)(QueueOverHttp.resume)
routes.post("/mailouts/{id}/retry", responses=ACT_REFUSALS)(QueueOverHttp.retry)
routes.post("/mailouts/{id}/settle", responses=ACT_REFUSALS, openapi_extra=body_of(Settle))(
    QueueOverHttp.settle
)
