"""Sign-ups: how many asked to join each list, day by day, and how many confirmed it. Counted, not named."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from gateway.dashboard.desk import Desk, page_route
from mailout.insight.history.port import days_ago
from mailout.insight.metrics import metric_rows
from mailout.insight.metrics.port import Counter
from mailout.letters.audience import list_rows
from mailout.readers import sign_up_rows
from mailout.readers.port import Asked

DAYS = 30
REFUSED = {
    Asked.ALL: "over the limit of all, 1,000 an hour",
    Asked.NETWORK: "over the limit of their network",
    Asked.ADDRESS: "over the limit of the address",
    Asked.BOT: "filled in by a program",
}


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))

    @routes.get("/signups")
    def sign_ups(request: Request) -> Response:
        session = desk.visitor(request)
        days = sign_up_rows.sign_up_days(desk.store, days_ago(desk.store.now(), desk.zone, DAYS))
        counts = metric_rows.counts(desk.store)
        refused = {words: counts.get((Counter.SIGN_UPS, result), 0.0) for result, words in REFUSED.items()}
        return desk.views.page(
            request,
            "signups.html.j2",
            session,
            days=days,
            shown=DAYS,
            asked=sum(one.asked for one in days),
            confirmed=sum(one.confirmed for one in days),
            refused={words: int(n) for words, n in refused.items() if n},
            bounced=metric_rows.confirmations(desk.store),
            names={one.key: one.name for one in list_rows.lists(desk.store)},
            is_open=desk.settings.signup,
        )

    return routes
