"""Health: one sentence, what fails, and folded away what passes; rates, quota and pace; who did what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from gateway.dashboard.checks import CHECKS_WAIT_SECONDS, CheckResults
from gateway.dashboard.desk import Desk, page_route
from gateway.dashboard.letter_numbers import modes_shown
from mailout.insight.alerts import alert_rows
from mailout.insight.history import history_rows
from mailout.insight.metrics import metric_rows
from mailout.insight.reporting.phrases import count, reported
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.queue.mailout import Mailout, Status

RATE_LETTERS = 20
"""Letters over which rates are taken."""


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))

    @routes.get("/system")
    def system(request: Request) -> Response:
        session = desk.visitor(request)
        scope = desk.queue_forecast.scope
        vitals, signs = metric_rows.vitals(desk.store, scope), alert_rows.alert_signs(desk.store, scope)
        sent = recently_sent(desk)
        return desk.views.page(
            request,
            "system.html.j2",
            session,
            rates=rates_of(sent, desk.settings.max_bounce_rate, desk.settings.max_complaint_rate),
            quota=outbox_rows.quota(desk.store, scope),
            quota_most=signs.quota_most,
            pace=desk.queue_forecast.rate * vitals.pace.factor_now(signs.now),
            vitals=vitals,
            senders=[(m.locked_by, m) for m in sent if m.status is Status.PROCESSING and m.locked_by],
            inbox=feedback_rows.inbox_counts(desk.store),
            unheard=signs.unheard_since,
            transport=desk.settings.mailout_transport,
            acts=history_rows.acts(desk.store, limit=50) if session.is_admin else [],
            **_checked(desk, desk.checks.known(wait=CHECKS_WAIT_SECONDS)),
        )

    @routes.get("/system/checks")
    def cards(request: Request) -> Response:
        session = desk.visitor(request, admin=True)
        results = desk.checks.known(wait=CHECKS_WAIT_SECONDS)
        return desk.views.page(request, "checks.html.j2", session, **_checked(desk, results))

    return routes


def recently_sent(desk: Desk) -> Sequence[Mailout]:
    modes, statuses = modes_shown(desk.queue_forecast.rehearses), [Status.COMPLETED, Status.PROCESSING]
    return history_rows.letters(desk.store, modes=modes, statuses=statuses, limit=RATE_LETTERS)


def reds(desk: Desk) -> Sequence[str] | None:
    """What Health shows in red, in a few words each; None: nobody has looked yet. Asks nobody."""
    settings = desk.settings
    rates = rates_of(recently_sent(desk), settings.max_bounce_rate, settings.max_complaint_rate)
    found = [f"{one['name']} are over the line" for one in rates if one["level"] == "fail"]
    known = desk.checks.known()
    if known is None:
        return found or None
    return found + [f"{one.name}: {one.message}" for _, one in known.of("fail")]


def _checked(desk: Desk, results: CheckResults | None) -> dict[str, Any]:
    red = reds(desk)
    warned = results.of("warn") if results else ()
    return {
        "health": _sentence(red, len(warned), results),
        "results": results,
        "failing": results.of("fail") if results else (),
        "warned": warned,
        "passing": results.of("ok") if results else (),
    }


def _sentence(red: Sequence[str] | None, warned: int, results: CheckResults | None) -> str:
    if red:
        return "One thing is wrong." if len(red) == 1 else f"{len(red)} things are wrong."
    if results is None:
        return "The checks are running."
    worth = f" {count(warned, 'thing is', 'things are')} worth a look." if warned else ""
    return f"Everything works.{worth}"


def rates_of(sent: Sequence[Mailout], bounce: float, complaint: float) -> Sequence[dict[str, Any]]:
    """Of the last letters of which SES has reported anything: our own line, and the one at which mailbox
    providers begin to refuse."""
    heard = [one for one in sent if reported(one)]
    whole = sum(m.ledger.sent for m in heard)
    rows = []
    for metric, name, line, providers in (
        ("bounced", "Bounces", bounce, "Amazon SES reviews accounts at 5 % and stops them at 10 %."),
        (
            "complained",
            "Complaints",
            complaint,
            "Gmail and Yahoo ask for less than 0.1 % and refuse at 0.3 %.",
        ),
    ):
        n = sum(m.metrics.get(metric, 0) for m in heard)
        rate = n / whole if whole else 0.0
        level = "fail" if rate > line else "warn" if rate > line / 2 else "ok"
        rows.append(
            {"name": name, "n": n, "of": whole, "rate": rate, "line": line, "level": level, "says": providers}
        )
    return rows
