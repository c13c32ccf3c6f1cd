"""Problems: what waits for a person, each with its remedy and its button."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from gateway.dashboard.desk import Desk, page_route
from mailout.base import error_log
from mailout.base.error_log import DeadLetter, ErrorRecord
from mailout.base.errors import AbortCode, UsageError
from mailout.base.redact import redact_text
from mailout.insight.history import history_rows
from mailout.insight.history.port import Refusal
from mailout.insight.reporting.codes import NOTES, STOPPED, remedy_of
from mailout.insight.reporting.phrases import single_mails_wait
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.queue import dead_letters, queue_rows

PROBLEMS_SHOWN = 200
UNSUPPORTED = "content_block_unsupported"
REFUSALS_SHOWN_SECONDS = 14 * 86_400.0
"""How long a refused request is shown: an old one is nobody's problem any more."""


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))

    @routes.get("/problems")
    def problems(request: Request) -> Response:
        session = desk.visitor(request)
        errors = grouped(error_log.errors(desk.store, limit=PROBLEMS_SHOWN), hide=not session.is_admin)
        since = desk.store.now() - REFUSALS_SHOWN_SECONDS
        return desk.views.page(
            request,
            "problems.html.j2",
            session,
            singles=_single_mails(desk, hide=not session.is_admin),
            for_you=queue_rows.needing_a_person(desk.store),
            doubts=feedback_rows.doubts_open(desk.store),
            dead=[_dead(row) for row in error_log.dead_letters(desk.store, limit=50)]
            if session.is_admin
            else [],
            refused=[
                _refused(one) for one in history_rows.refusals(desk.store, limit=20) if one.last_at >= since
            ],
            blocks=[one for one in errors if one["code"] == UNSUPPORTED],
            errors=[one for one in errors if one["code"] != UNSUPPORTED],
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


def _single_mails(desk: Desk, *, hide: bool) -> str:
    """Why they wait; empty if nothing holds them up."""
    waiting = desk.store.single_mails_waiting(rehearsal=desk.queue_forecast.rehearses)
    said = single_mails_wait(waiting, desk.zone) or ""
    return redact_text(said) if hide else said


def grouped(errors: Sequence[ErrorRecord], *, hide: bool) -> Sequence[Mapping[str, Any]]:
    """Equal ones once: how often, and when last."""
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for error in errors:
        said = redact_text(error.message) if hide else error.message
        group = groups.setdefault(
            (error.code, said),
            {
                "code": error.code,
                "message": said,
                "stage": error.stage,
                "at": error.at,
                "n": 0,
                "mailout": "",
                "remedy": remedy(error.code),
            },
        )
        group["n"] += 1
        group["at"] = max(group["at"], error.at)
        group["mailout"] = group["mailout"] or error.mailout or ""
    return list(groups.values())[:50]


def remedy(code: str) -> str:
    """What a person can do about it; empty where nobody knows."""
    if code == UNSUPPORTED:
        return "Open the letter to see what remains of it, or write it with another kind of block in Notion."
    if code in NOTES:
        return NOTES[code].remedy
    return STOPPED[AbortCode(code)] if code in tuple(AbortCode) else remedy_of(code, failed=True)


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


REFUSED: Mapping[str, tuple[str, str]] = {
    "/ses-events": (
        "Delivery report (SNS)",
        "Is it your own SNS topic? Add it to `SNS_TOPIC_ARNS`. If not, ignore it: somebody else sent it.",
    ),
    "/webhooks/notion": (
        "Notion webhook",
        "Did you set one up? Check `NOTION_WEBHOOK_TOKEN` or `NOTION_AUTOMATION_SECRET`. If not, ignore it.",
    ),
    "/send-mailout": (
        "Request to send a letter",
        "Is it your own program? Check its token against `API_TOKEN`. If not, ignore it.",
    ),
    "/articles/send": (
        "Request to send an article",
        "Is it your own program? Check its password against `ADMIN_PASSWORD`. If not, ignore it.",
    ),
}


def _refused(one: Refusal) -> Mapping[str, Any]:
    what, advice = REFUSED.get(one.path, (one.path, ""))
    return {"what": what, "why": one.why, "n": one.n, "at": one.last_at, "remedy": advice}
