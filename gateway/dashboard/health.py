"""Health: one sentence, what fails, and folded away what passes; rates, quota and pace; who did what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import Response

from gateway.dashboard.checks import CHECKS_WAIT_SECONDS
from gateway.dashboard.desk import Admin, Desk, Visitor, page_routes
from mailout.insight.alerts import alert_rows
from mailout.insight.history import history_rows
from mailout.insight.metrics import metric_rows
from mailout.insight.reporting.phrases import count, reported
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.queue.mailout import Mailout, Status

RATE_LETTERS = 20
"""Letters over which rates are taken."""
WORDS = {
    "bounced": ("Bounces", "Amazon SES reviews accounts at 5 % and stops them at 10 %."),
    "complained": ("Complaints", "Gmail and Yahoo ask for less than 0.1 % and refuse at 0.3 %."),
}


routes = page_routes()


@routes.get("/system")
def system(visit: Visitor) -> Response:
    desk = visit.desk
    scope = desk.queue_forecast.scope
    vitals, signs = metric_rows.vitals(desk.store, scope), alert_rows.alert_signs(desk.store, scope)
    sent = recently_sent(desk)
    return visit.page(
        "system.html.j2",
        rates=rates_of(desk, sent),
        quota=outbox_rows.quota(desk.store, scope),
        quota_most=signs.quota_most,
        pace=desk.queue_forecast.rate * vitals.pace.factor_now(signs.now),
        vitals=vitals,
        senders=[(m.locked_by, m) for m in sent if m.status is Status.PROCESSING and m.locked_by],
        inbox=feedback_rows.inbox(desk.store),
        unheard=signs.unheard_since,
        transport=desk.settings.mailout_transport,
        acts=history_rows.acts(desk.store, limit=50) if visit.session.is_admin else [],
        **_checked(desk),
    )


@routes.get("/system/checks")
def cards(visit: Admin) -> Response:
    return visit.page("checks.html.j2", **_checked(visit.desk))


def recently_sent(desk: Desk) -> Sequence[Mailout]:
    statuses = [Status.COMPLETED, Status.PROCESSING]
    return history_rows.letters(desk.store, modes=desk.modes, statuses=statuses, limit=RATE_LETTERS)


def reds(desk: Desk) -> Sequence[str] | None:
    """What Health shows in red, in a few words each; None: nobody has looked yet. Asks nobody."""
    rates = rates_of(desk, recently_sent(desk))
    found = [f"{one['name']} are over the line" for one in rates if one["level"] == "fail"]
    known = desk.checks.known()
    if known is None:
        return found or None
    return found + [f"{one.name}: {one.message}" for _, one in known.of("fail")]


def _checked(desk: Desk) -> dict[str, Any]:
    results = desk.checks.known(wait=CHECKS_WAIT_SECONDS)
    red = reds(desk)
    warned = results.of("warn") if results else ()
    health = "The checks are running."
    if red:
        health = "One thing is wrong." if len(red) == 1 else f"{len(red)} things are wrong."
    elif results is not None:
        worth = f" {count(len(warned), 'thing is', 'things are')} worth a look." if warned else ""
        health = f"Everything works.{worth}"
    return {
        "health": health,
        "results": results,
        "failing": results.of("fail") if results else (),
        "warned": warned,
        "passing": results.of("ok") if results else (),
    }


def rates_of(desk: Desk, sent: Sequence[Mailout]) -> Sequence[dict[str, Any]]:
    """Of the last letters of which SES has reported anything: our own line, and the one at which mailbox
    providers begin to refuse."""
    heard = [one for one in sent if reported(one)]
    whole = sum(m.ledger.sent for m in heard)
    rows = []
    lines = {"bounced": desk.settings.max_bounce_rate, "complained": desk.settings.max_complaint_rate}
    for metric, line in lines.items():
        name, providers = WORDS[metric]
        n = sum(m.metrics.get(metric, 0) for m in heard)
        rate = n / whole if whole else 0.0
        level = "fail" if rate > line else "warn" if rate > line / 2 else "ok"
        rows.append(
            {"name": name, "n": n, "of": whole, "rate": rate, "line": line, "level": level, "says": providers}
        )
    return rows
