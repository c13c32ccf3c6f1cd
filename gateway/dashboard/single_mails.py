"""Single mails that failed, are in doubt or wait, and what can be done about one. Their texts are never
shown: some of them carry secret links. Notifications: our messages by state, the producer's queue by status,
and a way to send one again."""

from __future__ import annotations

import re
from urllib.parse import urlencode

from fastapi import Response

from gateway.dashboard.desk import Admin, AdminAct, Visitor, page_routes
from mailout.base.errors import NotFound, SourceUnavailable, UsageError
from mailout.insight.history import history_rows
from mailout.insight.history.port import NOTIFICATIONS_COUNTED
from mailout.insight.reporting.phrases import single_mails_wait
from mailout.kinds.notifications.port import ProducerQueue
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.outbox_rows import SINGLE_MAIL_STATES
from mailout.outbox.delivery.protocol import Timing
from mailout.outbox.queue import actions
from mailout.outbox.queue.actions import SettleVerdict

SINGLE_MAILS_SHOWN = 100
NAMES = {"failed": "Failed", "unknown": "In doubt", "pending": "Waiting"}
NOTIFICATIONS_SHOWN = 50
NUMBER = re.compile(r"[0-9]{1,18}")

routes = page_routes()


@routes.get("/single-mails")
def single_mails(visit: Admin, state: str = "failed", company: str = "") -> Response:
    desk, company = visit.desk, company.strip()
    state = state if state in SINGLE_MAIL_STATES else "failed"
    waiting = desk.store.single_mails_waiting(rehearsal=desk.rehearses)
    return visit.page(
        "single_mails.html.j2",
        state=state,
        names=NAMES,
        company=company,
        rows=outbox_rows.single_mails(
            desk.store, SINGLE_MAIL_STATES[state], company or None, SINGLE_MAILS_SHOWN
        ),
        most=SINGLE_MAILS_SHOWN,
        held=single_mails_wait(waiting, desk.zone) or "",
    )


@routes.post("/single-mails/{name}")
def act_on_one(act: AdminAct, name: str) -> Response:
    id, verdict, store = act.form.get("id"), act.form.get("as"), act.desk.store
    shown = {"state": act.form.get("state"), "company": act.form.get("company")}
    if name not in ("retry", "cancel", "settle"):
        raise NotFound("There is no such act.")
    act.back_to("/single-mails?" + urlencode(shown))
    if name == "retry":
        actions.retry_single_mail(store, id)
        return act.done("retried a single mail", id, f"It is tried again {act.desk.soon()}.")
    if name == "cancel":
        actions.cancel_single_mail(store, id)
        return act.done("cancelled a single mail", id, "Cancelled: it is not sent.")
    if verdict not in tuple(SettleVerdict):
        raise UsageError("Choose what became of it.")
    timing = Timing.of(act.desk.settings.lock_seconds)
    if not actions.settle(store, None, SettleVerdict(verdict), timing, [id]):
        raise UsageError("It is not settled: it is not in doubt, or its attempt was just now.")
    again = verdict == SettleVerdict.PENDING
    said = f"It is sent again {act.desk.soon()}." if again else f"It is settled as {verdict}."
    return act.done("settled a single mail", id, said)


@routes.get("/notifications")
def notifications(visit: Visitor, status: str = "") -> Response:
    desk, is_admin = visit.desk, visit.session.is_admin
    queue: ProducerQueue | None = None
    why = ""
    if desk.settings.notify_db is not None:
        try:
            queue = desk.tools.producer_queue(status or None)
        except SourceUnavailable as error:
            why = str(error)
    states = history_rows.notification_states(desk.store, rehearsal=desk.rehearses)
    return visit.page(
        "notifications.html.j2",
        states=sorted(states.items(), key=lambda one: -one[1]),
        latest=NOTIFICATIONS_COUNTED,
        messages=history_rows.latest_notifications(
            desk.store, rehearsal=desk.rehearses, limit=NOTIFICATIONS_SHOWN
        )
        if is_admin
        else [],
        queue=queue,
        rows=queue.rows if queue and is_admin else [],
        why=why,
        wanted=status if queue and status in queue.counts else "",
    )


@routes.post("/notifications/requeue")
def requeue(act: AdminAct) -> Response:
    act.back_to("/notifications")
    id = act.form.get("id")
    if not NUMBER.fullmatch(id):
        raise UsageError("Nothing is requeued: it is not named by its number.")
    act.desk.tools.requeue_notification(int(id))
    return act.done("requeued a notification", id, f"Notification {id} is pending again.")
