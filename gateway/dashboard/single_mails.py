"""Single mails that failed, are in doubt or wait, and what can be done about one. Their texts are never
shown: some of them carry secret links."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response

from gateway.dashboard.desk import Desk, page_route
from gateway.dashboard.views import go_to
from mailout.base.errors import UsageError
from mailout.insight.reporting.phrases import single_mails_wait
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.outbox_rows import SINGLE_MAIL_STATES
from mailout.outbox.delivery.protocol import Timing
from mailout.outbox.queue import actions
from mailout.outbox.queue.actions import SettleVerdict

SINGLE_MAILS_SHOWN = 100
NAMES = {"failed": "Failed", "unknown": "In doubt", "pending": "Waiting"}


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))

    @routes.get("/single-mails")
    def single_mails(request: Request, state: str = "failed", company: str = "") -> Response:
        session = desk.visitor(request, admin=True)
        state = state if state in SINGLE_MAIL_STATES else "failed"
        company = company.strip()
        rows = outbox_rows.single_mails(
            desk.store, SINGLE_MAIL_STATES[state], company or None, SINGLE_MAILS_SHOWN
        )
        waiting = desk.store.single_mails_waiting(rehearsal=desk.queue_forecast.rehearses)
        return desk.views.page(
            request,
            "single_mails.html.j2",
            session,
            state=state,
            names=NAMES,
            company=company,
            rows=rows,
            most=SINGLE_MAILS_SHOWN,
            held=single_mails_wait(waiting, desk.zone) or "",
        )

    @routes.post("/single-mails/{act}")
    async def act(request: Request, act: str) -> Response:
        session, form = await desk.acting(request)
        id = form.get("id")
        back = "/single-mails?" + urlencode({"state": form.get("state"), "company": form.get("company")})
        timing = Timing.of(desk.settings.lock_seconds)

        def settle() -> None:
            if not actions.settle(desk.store, None, SettleVerdict(form.get("as")), timing, [id]):
                raise UsageError("It is not settled: it is not in doubt, or its attempt was just now.")

        match act:
            case "retry":
                what, said = "retried a single mail", "It is tried again within a minute."

                def do() -> None:
                    actions.retry_single_mail(desk.store, id)
            case "cancel":
                what, said = "cancelled a single mail", "Cancelled: it is not sent."

                def do() -> None:
                    actions.cancel_single_mail(desk.store, id)
            case "settle" if form.get("as") in tuple(SettleVerdict):
                what, said, do = "settled a single mail", f"It is settled as {form.get('as')}.", settle
            case "settle":
                return go_to(back, "Choose what became of it.")
            case _:
                return desk.refuse(request, 404, "There is no such act.", session)
        return await desk.do(request, session, do, what=what, about=id, said=said, back=back)

    return routes
