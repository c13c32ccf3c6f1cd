"""Problems: what waits for a person, each with its remedy and its button."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from gateway.dashboard.desk import Desk, page_route
from mailout.error_log import ErrorRecord
from mailout.errors import UsageError
from mailout.redact import redact_text

MOST = 200


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))

    @routes.get("/problems")
    def problems(request: Request) -> Response:
        session = desk.visitor(request)
        errors = desk.store.errors(limit=MOST)
        return desk.views.page(
            request,
            "problems.html.j2",
            session,
            for_you=desk.store.needing_a_person(),
            doubts=desk.store.doubts_open(),
            dead=[_dead(row) for row in desk.store.dead_letters(limit=50)] if session.is_admin else [],
            errors=grouped(errors, hide=not session.is_admin),
        )

    @routes.post("/problems/requeue")
    async def requeue(request: Request) -> Response:
        session, form = await desk.acting(request)
        id = form.get("id")

        def do() -> None:
            if not desk.store.requeue_dead_letter(id):
                raise UsageError("It is not there any more, or it is nothing that can be read again.")

        said = "It is back in the inbox and is read again within a minute."
        return await desk.do(
            request, session, do, what="requeued a dead letter", about=id, said=said, back="/problems"
        )

    return routes


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
            },
        )
        group["n"] += 1
        group["at"] = max(group["at"], error.at)
        group["mailout"] = group["mailout"] or error.mailout or ""
    return list(groups.values())[:50]


def _dead(row: Mapping[str, Any]) -> Mapping[str, Any]:
    shown = json.dumps(row["payload"], ensure_ascii=False, indent=1)
    return {**row, "shown": shown[:4000], "again": row["topic"] == "ses-events"}
