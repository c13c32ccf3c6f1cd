"""Home: whether all is well, what is leaving, what is next, what became of the last one, how many people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from gateway.dashboard.desk import Desk, page_route
from gateway.dashboard.health import reds
from gateway.dashboard.letter_numbers import modes_shown
from gateway.dashboard.people_counts import people_chart, people_now
from gateway.dashboard.planned import planned_letters
from gateway.dashboard.sessions import LoginSession
from gateway.dashboard.troubles import Trouble, letter_troubles
from mailout.base.redact import redact_text
from mailout.insight.history import history_rows
from mailout.insight.reporting.phrases import count, forecast_text, left_alone, single_mails_wait
from mailout.letters.content.sample import sample_subject
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import Mailout, Status
from mailout.outbox.queue.snapshot import QueueSnapshot, due_at

TROUBLES_ON_HOME = 3


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))

    def moving(session: LoginSession) -> dict[str, Any]:
        """What changes while mail goes out."""
        snapshot = desk.queue_forecast.snapshot()
        waiting_for_you = queue_rows.needing_a_person(desk.store)
        held = {one.id for one in waiting_for_you}
        troubles = [
            one
            for one in letter_troubles(desk, hide=not session.is_admin)
            if one.link.removeprefix("/letters/") not in held
        ]
        red = reds(desk)
        active, lease = snapshot.active, desk.settings.lock_seconds
        goes_on_by = active.goes_on_by(snapshot.now, lease) if active else None
        forecast = snapshot.forecasts.get(active.id) if active and goes_on_by is None else None
        return {
            "sentence": sentence(snapshot, waiting_for_you, troubles, red),
            "singles": redact_text(single_mails_wait(snapshot.single_mails, desk.zone) or ""),
            "for_you": waiting_for_you[:5],
            "troubles": troubles[:TROUBLES_ON_HOME],
            "more_troubles": len(troubles) - TROUBLES_ON_HOME,
            "red": red or (),
            "checking": red is None,
            "active": active,
            "alone": left_alone(active, goes_on_by, desk.zone) if active and goes_on_by is not None else "",
            "forecast": forecast_text(forecast, desk.zone) if forecast else "",
            "rate": _rate(active, snapshot.now) if goes_on_by is None else "",
            "next_up": _next(snapshot),
            "all_paused": snapshot.all_paused,
            "planned": planned_letters(desk),
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
            **moving(session),
        )

    @routes.get("/home/live")
    def live(request: Request) -> Response:
        session = desk.visitor(request)
        return desk.views.page(request, "home_live.html.j2", session, **moving(session))

    return routes


def sentence(
    snapshot: QueueSnapshot,
    for_you: Sequence[Mailout],
    troubles: Sequence[Trouble],
    red: Sequence[str] | None,
) -> str:
    """`red` None: nobody has looked yet."""
    parts = [*_waiting(for_you), *_failed(troubles)]
    if not parts and snapshot.all_paused:
        parts.append("Everything is paused.")
    if not parts and snapshot.single_mails and snapshot.single_mails.hold:
        parts.append("Single mails wait.")
    if not parts and red:
        parts.append("Something is wrong with the setup." if len(red) == 1 else f"{len(red)} checks fail.")
    if parts:
        return " ".join(parts)
    return "Nothing waits for you." if red is None else "All is well."


def _waiting(for_you: Sequence[Mailout]) -> Sequence[str]:
    if len(for_you) == 1:
        return [f"One letter waits for you: {title(for_you[0])}."]
    return [f"{count(len(for_you), 'letter')} wait for you."] if for_you else []


def _failed(troubles: Sequence[Trouble]) -> Sequence[str]:
    if len(troubles) == 1:
        return [f"One letter failed or stopped: {troubles[0].title}."]
    return [f"{count(len(troubles), 'letter')} failed or stopped."] if troubles else []


def title(mailout: Mailout) -> str:
    return f"“{sample_subject(mailout.subject)}”" if mailout.subject else "a letter without a subject"


def _next(snapshot: QueueSnapshot) -> Sequence[Mailout]:
    """What goes on by itself, soonest first."""
    return sorted((m for m in snapshot.queued if due_at(m) < float("inf")), key=due_at)[:5]


def _rate(active: Mailout | None, now: float) -> str:
    if active is None or active.started_at is None or not active.ledger.sent or now <= active.started_at:
        return ""
    return f"{active.ledger.sent / (now - active.started_at):,.1f} a second"
