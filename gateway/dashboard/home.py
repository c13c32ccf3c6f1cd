"""Home: whether all is well, what is leaving, what is next, what became of the last one, how many people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from gateway.dashboard.desk import Desk, page_route
from gateway.dashboard.letter_numbers import modes_shown
from gateway.dashboard.people_counts import people_chart, people_now
from mailout.base.redact import redact_text
from mailout.insight.history import history_rows
from mailout.insight.history.port import WrittenPage
from mailout.insight.reporting.phrases import count, forecast_text, single_mails_wait
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import Mailout, Status
from mailout.outbox.queue.snapshot import QueueSnapshot, due_at


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))

    def moving() -> dict[str, Any]:
        """What changes while mail goes out."""
        snapshot = desk.queue_forecast.snapshot()
        waiting_for_you = queue_rows.needing_a_person(desk.store)
        active = snapshot.active
        forecast = snapshot.forecasts.get(active.id) if active else None
        return {
            "sentence": sentence(snapshot, waiting_for_you),
            "singles": redact_text(single_mails_wait(snapshot.single_mails, desk.zone) or ""),
            "for_you": waiting_for_you[:5],
            "active": active,
            "forecast": forecast_text(forecast, desk.zone) if forecast else "",
            "rate": _rate(active, snapshot.now),
            "next_up": _next(snapshot),
            "all_paused": snapshot.all_paused,
            "asked": snapshot.asked,
            "ready_pages": _ready_later(desk, snapshot.now),
            "due_at": due_at,
        }

    @routes.get("/")
    def home(request: Request) -> Response:
        if not desk.sessions.open:
            return desk.views.page(request, "closed.html.j2", status=403)
        session = desk.visitor(request)
        modes = modes_shown(desk.queue_forecast.rehearses)
        last = next(
            iter(history_rows.letters(desk.store, modes=modes, statuses=[Status.COMPLETED], limit=1)), None
        )
        return desk.views.page(
            request,
            "home.html.j2",
            session,
            last=last,
            people=people_now(desk),
            chart=people_chart(desk),
            **moving(),
        )

    @routes.get("/home/live")
    def live(request: Request) -> Response:
        session = desk.visitor(request)
        return desk.views.page(request, "home_live.html.j2", session, **moving())

    return routes


def sentence(snapshot: QueueSnapshot, for_you: Sequence[Mailout]) -> str:
    if len(for_you) == 1:
        return f"One letter waits for you: {title(for_you[0])}."
    if for_you:
        return f"{count(len(for_you), 'letter')} wait for you."
    if snapshot.all_paused:
        return "Everything is paused."
    if snapshot.single_mails and snapshot.single_mails.hold:
        return "Single mails wait."
    return "All is well."


def title(mailout: Mailout) -> str:
    return f"“{mailout.subject}”" if mailout.subject else "a letter without a subject"


def _next(snapshot: QueueSnapshot) -> Sequence[Mailout]:
    """What goes on by itself, soonest first."""
    return sorted((m for m in snapshot.queued if due_at(m) < float("inf")), key=due_at)[:5]


def _ready_later(desk: Desk, now: float) -> Sequence[WrittenPage]:
    """Pages in Notion that ask to be sent at a time to come; they are in no queue yet."""
    read = history_rows.written_pages(desk.store)
    found = [one for one in read.pages if one.is_ready and (one.send_at or 0) > now] if read else []
    return sorted(found, key=lambda one: one.send_at or 0)[:5]


def _rate(active: Mailout | None, now: float) -> str:
    if active is None or active.started_at is None or not active.ledger.sent or now <= active.started_at:
        return ""
    return f"{active.ledger.sent / (now - active.started_at):,.1f} a second"
