"""What moves: one event stream for all open pages. A page that hears of news asks for its part again."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from gateway.dashboard.desk import Desk, page_route
from gateway.stream import STREAM_POLL_SECONDS, Stream
from mailout.insight.reporting.queue_json import snapshot_dict


def router(desk: Desk, *, every: float = STREAM_POLL_SECONDS) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))

    def look() -> dict[str, Any]:
        """That something has changed is enough: nothing of the queue is sent along."""
        found = snapshot_dict(desk.queue_forecast.snapshot())
        found.pop("as_of")
        text = json.dumps(found, sort_keys=True, default=str)
        return {"seen": hashlib.sha256(text.encode()).hexdigest()[:16]}

    stream = Stream(look, every=every)

    @routes.get("/live")
    async def live(request: Request) -> StreamingResponse:
        desk.visitor(request)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(stream.events(), media_type="text/event-stream", headers=headers)

    return routes
