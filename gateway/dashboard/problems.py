"""Problems: what waits for a person, a card each: what, since when, one button. Resolved ones are gone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response

from gateway.dashboard.desk import Desk, page_route
from gateway.dashboard.health import reds
from gateway.dashboard.troubles import (
    CLOSED,
    Trouble,
    letter_troubles,
    other_troubles,
    waits_for_a_person,
)
from mailout.base import error_log
from mailout.base.error_log import DeadLetter
from mailout.base.errors import UsageError
from mailout.base.redact import redact_text
from mailout.insight.reporting.phrases import count, single_mails_wait
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.queue import dead_letters, queue_rows


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))

    @routes.get("/problems")
    def problems(request: Request) -> Response:
        session = desk.visitor(request)
        hide = not session.is_admin
        held = queue_rows.needing_a_person(desk.store)
        known = {f"/letters/{one.id}" for one in held}
        return desk.views.page(
            request,
            "problems.html.j2",
            session,
            urgent=[
                *(waits_for_a_person(desk, one) for one in held),
                *(one for one in letter_troubles(desk, hide=hide) if one.link not in known),
                *_single_mails(desk, sum(one.ledger.unknown for one in held), hide=hide),
                *_health(desk),
            ],
            others=other_troubles(desk, hide=hide),
            dead=[] if hide else [_dead(row) for row in error_log.dead_letters(desk.store, limit=50)],
        )

    @routes.post("/problems/close")
    async def close(request: Request) -> Response:
        session, form = await desk.acting(request)
        said = "Closed. If it happens again, it comes back."
        return await desk.do(
            request,
            session,
            lambda: None,
            what=CLOSED,
            about=form.get("key")[:200],
            said=said,
            back="/problems",
        )

    @routes.post("/problems/requeue")
    async def requeue(request: Request) -> Response:
        session, form = await desk.acting(request)
        id = form.get("id")

        def do() -> None:
            if not desk.store.requeue_dead_letter(id):
                dead_letters.requeue(desk.store, id)

        said = "It is tried again within a minute."
        return await desk.do(
            request, session, do, what="requeued a dead letter", about=id, said=said, back="/problems"
        )

    @routes.post("/problems/drop")
    async def drop(request: Request) -> Response:
        session, form = await desk.acting(request)
        id = form.get("id")

        def do() -> None:
            if not desk.store.drop_dead_letter(id):
                raise UsageError("It is no longer on the list.")

        said = "Removed from the list."
        return await desk.do(
            request, session, do, what="dropped a dead letter", about=id, said=said, back="/problems"
        )

    return routes


def _single_mails(desk: Desk, doubts_of_letters: int, *, hide: bool) -> list[Trouble]:
    """Why they wait, and those in doubt."""
    waiting = desk.store.single_mails_waiting(rehearsal=desk.queue_forecast.rehearses)
    said = single_mails_wait(waiting, desk.zone)
    found = []
    if said and waiting.hold:
        text = redact_text(said) if hide else said
        found.append(Trouble("Single mails wait", text, waiting.hold.since, link=_link("pending", hide)))
    doubts = feedback_rows.doubts_open(desk.store)
    if doubts.unknown > doubts_of_letters:
        n = doubts.unknown - doubts_of_letters
        text = (
            f"{count(n, 'single mail was', 'single mails were')} handed over, and no answer came back."
            " Nothing is ever sent twice on a guess: look whether they arrived."
        )
        since = doubts.oldest or desk.store.now()
        found.append(Trouble("Single mails in doubt", text, since, link=_link("unknown", hide)))
    return found


def _link(state: str, hide: bool) -> str:
    """Their page shows addresses: it is the administrator's."""
    return "" if hide else f"/single-mails?state={state}"


def _health(desk: Desk) -> list[Trouble]:
    red = reds(desk)
    if not red:
        return []
    title = "Health: one thing is wrong" if len(red) == 1 else f"Health: {len(red)} things are wrong"
    known = desk.checks.known()
    since = known.at if known else desk.store.now()
    return [Trouble(title, "; ".join(red[:3]) + ".", since, link="/system", link_label="Open Health")]


def _dead(row: DeadLetter) -> Mapping[str, Any]:
    shown = json.dumps(row["payload"], ensure_ascii=False, indent=1)
    is_message = row["topic"] == dead_letters.SEND
    what = "A message that failed for good" if is_message else "An event that could not be read"
    return {
        **row,
        "shown": shown[:4000],
        "what": what,
        "again": is_message or row["topic"] == "ses-events",
        "mailout": row["payload"].get("mailout", "") if is_message else "",
    }
