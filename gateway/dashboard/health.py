"""Health: `doctor` as cards, rates against the mailbox providers' limits, quota and pace, who did what."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from gateway.dashboard.desk import Desk, page_route
from gateway.dashboard.letter_numbers import modes_shown
from mailout.insight.alerts import alert_rows
from mailout.insight.doctor.checks import Check
from mailout.insight.history import history_rows
from mailout.insight.metrics import metric_rows
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.queue.mailout import Mailout, Status

CHECKS_CACHE_SECONDS = 60.0
RATE_LETTERS = 20
"""Letters over which rates are taken."""

Parts = Sequence[tuple[str, Sequence[Check]]]


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))
    checks = _Checks(
        lambda: [(part.name, list(part.checks)) for part in desk.tools.examine()], desk.store.now
    )

    @routes.get("/system")
    def system(request: Request, checks_too: bool = False) -> Response:
        session = desk.visitor(request)
        scope = desk.queue_forecast.scope
        vitals, signs = metric_rows.vitals(desk.store, scope), alert_rows.alert_signs(desk.store, scope)
        modes = modes_shown(desk.queue_forecast.rehearses)
        sent = history_rows.letters(
            desk.store, modes=modes, statuses=[Status.COMPLETED, Status.PROCESSING], limit=RATE_LETTERS
        )
        return desk.views.page(
            request,
            "system.html.j2",
            session,
            rates=rates_of(sent, desk.settings.max_bounce_rate, desk.settings.max_complaint_rate),
            letters=len(sent),
            quota=outbox_rows.quota(desk.store, scope),
            quota_most=signs.quota_most,
            pace=desk.queue_forecast.rate * vitals.pace.factor_now(signs.now),
            vitals=vitals,
            senders=[(m.locked_by, m.subject) for m in sent if m.status is Status.PROCESSING and m.locked_by],
            inbox=feedback_rows.inbox_counts(desk.store),
            unheard=signs.unheard_since,
            transport=desk.settings.mailout_transport,
            acts=history_rows.acts(desk.store, limit=50) if session.is_admin else [],
            parts=checks.made() if checks_too and session.is_admin else None,
        )

    @routes.get("/system/checks")
    def cards(request: Request) -> Response:
        session = desk.visitor(request, admin=True)
        return desk.views.page(request, "checks.html.j2", session, parts=checks.made())

    return routes


def rates_of(sent: Sequence[Mailout], bounce: float, complaint: float) -> Sequence[dict[str, Any]]:
    """Of the last letters together: our own line, and the one at which mailbox providers begin to refuse."""
    whole = sum(m.ledger.sent for m in sent)
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
        n = sum(m.metrics.get(metric, 0) for m in sent)
        rate = n / whole if whole else 0.0
        level = "fail" if rate > line else "warn" if rate > line / 2 else "ok"
        rows.append(
            {"name": name, "n": n, "of": whole, "rate": rate, "line": line, "level": level, "says": providers}
        )
    return rows


class _Checks:
    """Asked of the parts at most once a minute: SES answers one question a second."""

    def __init__(self, ask: Callable[[], Parts], now: Callable[[], float]) -> None:
        self._ask = ask
        self._now = now
        self._lock = threading.Lock()
        self._known: tuple[float, Parts] | None = None

    def made(self) -> Parts:
        with self._lock:
            if self._known is None or self._now() - self._known[0] > CHECKS_CACHE_SECONDS:
                self._known = (self._now(), self._ask())
            return self._known[1]
