"""Notifications: our messages by state, the producer's queue by status, and a way to send one again."""

from __future__ import annotations

import re

from fastapi import APIRouter, Request, Response

from gateway.dashboard.desk import Desk, page_route
from gateway.dashboard.views import go_to
from mailout.base.errors import SourceUnavailable
from mailout.insight.history import history_rows
from mailout.insight.history.port import NOTIFICATIONS_COUNTED
from mailout.kinds.notifications.port import ProducerQueue

NOTIFICATIONS_SHOWN = 50
NUMBER = re.compile(r"[0-9]{1,18}")


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))
    rehearses = desk.queue_forecast.rehearses

    @routes.get("/notifications")
    def notifications(request: Request, status: str = "") -> Response:
        session = desk.visitor(request)
        queue: ProducerQueue | None = None
        why = ""
        if desk.settings.notify_db is not None:
            try:
                queue = desk.tools.producer_queue(status or None)
            except SourceUnavailable as error:
                why = str(error)
        states = history_rows.notification_states(desk.store, rehearsal=rehearses)
        messages = (
            history_rows.latest_notifications(desk.store, rehearsal=rehearses, limit=NOTIFICATIONS_SHOWN)
            if session.is_admin
            else []
        )
        return desk.views.page(
            request,
            "notifications.html.j2",
            session,
            states=sorted(states.items(), key=lambda one: -one[1]),
            latest=NOTIFICATIONS_COUNTED,
            messages=messages,
            queue=queue,
            rows=queue.rows if queue and session.is_admin else (),
            why=why,
            wanted=status if queue and status in queue.counts else "",
        )

    @routes.post("/notifications/requeue")
    async def requeue(request: Request) -> Response:
        session, form = await desk.acting(request)
        id = form.get("id")
        if not NUMBER.fullmatch(id):
            return go_to("/notifications", "Nothing is requeued: it is not named by its number.")
        return await desk.do(
            request,
            session,
            lambda: desk.tools.requeue_notification(int(id)),
            what="requeued a notification",
            about=id,
            said=f"Notification {id} is pending again.",
            back="/notifications",
        )

    return routes
