"""The dashboard, put together."""

from __future__ import annotations

import time
from collections.abc import Callable
from zoneinfo import ZoneInfo

from fastapi import APIRouter

from gateway.dashboard import (
    articles,
    draft,
    health,
    home,
    imports,
    letter_acts,
    letters,
    lists,
    live,
    login,
    notifications,
    people,
    problems,
    segments,
    sign_ups,
    single_mails,
    static,
)
from gateway.dashboard.checks import Checks
from gateway.dashboard.desk import Desk, Tools
from gateway.dashboard.sessions import Sessions, SignedOut
from gateway.dashboard.sign_in_links import SignInLinks
from gateway.dashboard.used import UsedPages
from gateway.dashboard.views import Views
from gateway.prefect_events import Emitter
from gateway.stream import STREAM_POLL_SECONDS
from gateway.wrong_passwords import WrongPasswords
from mailout.base.settings import Settings
from mailout.outbox.queue.snapshot import QueueForecast
from mailout.store import Store


def router(
    settings: Settings,
    store: Store,
    queue_forecast: QueueForecast,
    emitter: Emitter | None,
    wrong: WrongPasswords,
    tools: Tools | None = None,
    *,
    now: Callable[[], float] = time.time,
    every: float = STREAM_POLL_SECONDS,
) -> APIRouter:
    zone = ZoneInfo(settings.send_timezone)
    has_producer = settings.notify_db is not None
    used = UsedPages(
        store, has_producer=has_producer, has_sign_ups=settings.signup, rehearses=queue_forecast.rehearses
    )
    links = SignInLinks.of(settings, store, rehearses=queue_forecast.rehearses, emitter=emitter, now=now)
    desk = Desk(
        settings=settings,
        store=store,
        queue_forecast=queue_forecast,
        zone=zone,
        views=Views(zone, settings.org_name, rehearses=queue_forecast.rehearses, more_pages=used.menu),
        sessions=Sessions(
            settings.admin_password,
            settings.editor_password,
            now,
            links.people if links else None,
            settings.unsubscribe_keys,
        ),
        signed_out=SignedOut(store),
        wrong=wrong,
        used=used,
        checks=Checks((tools or Tools()).examine, store.now),
        emitter=emitter,
        tools=tools or Tools(),
        links=links,
    )
    routes = APIRouter(include_in_schema=False)
    routes.include_router(static.router())
    routes.include_router(live.router(desk, every=every))
    for part in (
        login,
        home,
        letters,
        letter_acts,
        draft,
        people,
        lists,
        imports,
        segments,
        articles,
        notifications,
        sign_ups,
        problems,
        health,
        single_mails,
    ):
        routes.include_router(part.router(desk))
    return routes
