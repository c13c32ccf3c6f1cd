"""Home: whether all is well, what is leaving, what is next, what became of the last one, how many people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import Response
from fastapi.responses import StreamingResponse

from gateway.dashboard.desk import Visit, Visitor, page_routes
from gateway.dashboard.health import reds
from gateway.dashboard.letters import planned_letters
from gateway.dashboard.people import people_chart, people_now
from gateway.dashboard.troubles import Trouble, held_and_failed, title
from mailout.insight.history import history_rows
from mailout.insight.reporting.phrases import count, forecast_text, left_alone, single_mails_wait
from mailout.outbox.queue.mailout import Mailout, Status
from mailout.outbox.queue.snapshot import QueueSnapshot, due_at

TROUBLES_ON_HOME = 3


routes = page_routes()


@routes.get("/")
def home(visit: Visitor) -> Response:
    desk = visit.desk
    sent = history_rows.letters(desk.store, modes=desk.modes, statuses=[Status.COMPLETED], limit=1)
    return visit.page(
        "home.html.j2",
        last=next(iter(sent), None),
        people=people_now(desk),
        chart=people_chart(desk),
        **_moving(visit),
    )


@routes.get("/home/live")
def home_live(visit: Visitor) -> Response:
    return visit.page("home_live.html.j2", **_moving(visit))


@routes.get("/live")
async def live(visit: Visitor) -> Response:
    """One event stream for all open pages. A page that hears of news asks for its part again."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(visit.desk.stream.events(), media_type="text/event-stream", headers=headers)


def _moving(visit: Visit) -> dict[str, Any]:
    """What changes while mail goes out."""
    desk = visit.desk
    snapshot = desk.queue_forecast.snapshot()
    held, troubles = held_and_failed(desk)
    red = reds(desk)
    active = snapshot.active
    shown = [one for one in troubles if not active or one.link != f"/letters/{active.id}"]
    goes_on_by = active.goes_on_by(snapshot.now, desk.settings.lock_seconds) if active else None
    forecast = snapshot.forecasts.get(active.id) if active and goes_on_by is None else None
    return {
        "sentence": sentence(snapshot, held, troubles, red),
        "singles": single_mails_wait(snapshot.single_mails, desk.zone),
        "for_you": held[:5],
        "troubles": shown[:TROUBLES_ON_HOME],
        "more_troubles": len(shown) - TROUBLES_ON_HOME,
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


def sentence(
    snapshot: QueueSnapshot,
    for_you: Sequence[Mailout],
    troubles: Sequence[Trouble],
    red: Sequence[str] | None,
) -> str:
    """`red` None: nobody has looked yet."""
    parts = ["Everything is paused."] if snapshot.all_paused else []
    if len(for_you) == 1:
        parts.append(f"One letter waits for you: {title(for_you[0])}.")
    elif for_you:
        parts.append(f"{count(len(for_you), 'letter')} wait for you.")
    if len(troubles) == 1:
        parts.append(f"One letter failed or stopped: {troubles[0].title}.")
    elif troubles:
        parts.append(f"{count(len(troubles), 'letter')} failed or stopped.")
    if not parts and snapshot.single_mails and snapshot.single_mails.hold:
        parts.append("Single mails wait." if snapshot.single_mails.due else "Notifications wait.")
    if not parts and red:
        parts.append("Something is wrong with the setup." if len(red) == 1 else f"{len(red)} checks fail.")
    if parts:
        return " ".join(parts)
    return "Nothing waits for you." if red is None else "All is well."


def _next(snapshot: QueueSnapshot) -> Sequence[Mailout]:
    """What goes on by itself, soonest first."""
    return sorted((m for m in snapshot.queued if due_at(m) < float("inf")), key=due_at)[:5]


def _rate(active: Mailout | None, now: float) -> str:
    if active is None or active.started_at is None or not active.ledger.sent or now <= active.started_at:
        return ""
    return f"{active.ledger.sent / (now - active.started_at):,.1f} a second"
