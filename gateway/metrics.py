"""What Prometheus asks for."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from gateway.access import WrongTokens, token_needed
from gateway.progress import REFUSALS
from mailout.base.settings import Settings
from mailout.insight.metrics.port import MetricsStore
from mailout.insight.metrics.scrape import scrape
from mailout.outbox.queue.snapshot import QueueForecast


def router(
    settings: Settings, store: MetricsStore, queue_forecast: QueueForecast, wrong: WrongTokens
) -> APIRouter:
    routes = APIRouter(tags=["metrics"], dependencies=[Depends(token_needed(settings, wrong))])

    @routes.get("/metrics", responses=REFUSALS, response_class=Response)
    def metrics() -> Response:
        """Counters and gauges in Prometheus's text format."""
        text = scrape(store, scope=queue_forecast.scope, rate=queue_forecast.rate)
        return Response(text, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4, "Cache-Control": "no-store"})

    return routes
