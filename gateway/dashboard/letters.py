"""Letters, and one letter: what it is, how it stands, why it waits, what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from markupsafe import Markup

from gateway.dashboard.desk import Desk, page_route
from gateway.dashboard.letter_numbers import events_chart, is_counted, modes_shown, people_for, summary_of
from gateway.dashboard.mail_view import findings, mail_page, mail_text
from gateway.dashboard.people_counts import people_now
from gateway.dashboard.sessions import LoginSession
from mailout.base import ids
from mailout.base.setting_values import SendWindow
from mailout.insight.history import history_rows
from mailout.insight.reporting.codes import remedy_of
from mailout.insight.reporting.details import details
from mailout.insight.reporting.phrases import (
    MEANINGS,
    archived,
    forecast_text,
    ledger_numbers,
    left_alone,
    mode,
    resuming,
)
from mailout.insight.reporting.plot import NARROW, WIDE, plot
from mailout.insight.reporting.rows import csv_lines
from mailout.letters.content.refs import page_id_of
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.actions import SettleVerdict
from mailout.outbox.queue.mailout import WAITS_FOR_A_PERSON, Mailout, Status
from mailout.outbox.queue.port import mailout_or_none
from mailout.outbox.queue.snapshot import OPEN

LETTERS_PER_PAGE = 50
COUNT_LATER_PEOPLE = 100_000
"""So many people are counted after the page is there: that takes a moment."""
VIEWS = ("desktop", "phone", "dark", "text")
DRAFTS = "drafts"
FILTERS: dict[str, tuple[str, Sequence[Status]]] = {
    "": ("All", ()),
    DRAFTS: ("Drafts", ()),
    "waiting": ("Waiting", OPEN),
    "sent": ("Sent", (Status.COMPLETED, Status.CANCELLED)),
    "trials": ("Tests and rehearsals", ()),
}
NAMES = {key: name for key, (name, _) in FILTERS.items()}


@dataclass(frozen=True, slots=True)
class Offer:
    """What can be done with a letter's page or file."""

    ref: str | None  # what a request would name; None: a file that this machine cannot name
    size: int  # how many people would get it, or get it
    real: Mailout | None  # it has been asked for already


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))

    @routes.get("/letters")
    def letters(request: Request, show: str = "", before: str = "") -> Response:
        session = desk.visitor(request)
        show = show if show in FILTERS else ""
        if show == DRAFTS:
            return _drafts(desk, request, session)
        page = history_rows.letters(
            desk.store,
            modes=_modes(desk, show),
            statuses=FILTERS[show][1],
            before=page_key(before),
            limit=LETTERS_PER_PAGE + 1,
        )
        more = page[LETTERS_PER_PAGE - 1] if len(page) > LETTERS_PER_PAGE else None
        return desk.views.page(
            request,
            "letters.html.j2",
            session,
            letters=page[:LETTERS_PER_PAGE],
            filters=NAMES,
            show=show,
            more=f"{more.created_at!r}~{more.id}" if more else "",
            first=not before,
            asked=queue_rows.asked(desk.store, waiting=0),
        )

    @routes.get("/letters/{id}")
    def letter(request: Request, id: str, view: str = "desktop", count: bool = False) -> Response:
        session = desk.visitor(request)
        mailout = desk.store.mailout(id)
        before = mailout.status in OPEN or mode(mailout) != "real"
        quick = count or not is_counted(mailout) or sum(people_now(desk).values()) < COUNT_LATER_PEOPLE
        offer = offer_for(desk, mailout) if before and quick else None
        return desk.views.page(
            request,
            "letter.html.j2",
            session,
            view=view if view in VIEWS else "desktop",
            views=VIEWS,
            offer=offer,
            before=before,
            on_web=bool(desk.settings.public_url and mailout.slug),
            findings=findings(desk, mailout, offer.size) if offer else [],
            run=_run(desk, mailout),
            remedy=remedy_of,
            text=mail_text(desk.store, mailout) if view == "text" else "",
            what_if=_what_if(desk, request, mailout),
            asked=request.query_params,
            **_numbers(desk, session, mailout),
            **_standing(desk, mailout),
        )

    @routes.get("/letters/{id}/before")
    def before(request: Request, id: str) -> Response:
        session = desk.visitor(request)
        mailout = desk.store.mailout(id)
        offer = offer_for(desk, mailout)
        return desk.views.page(
            request,
            "letter_before.html.j2",
            session,
            mailout=mailout,
            offer=offer,
            findings=findings(desk, mailout, offer.size),
        )

    @routes.get("/letters/{id}/live")
    def live(request: Request, id: str) -> Response:
        session = desk.visitor(request)
        mailout = desk.store.mailout(id)
        return desk.views.page(request, "letter_live.html.j2", session, **_standing(desk, mailout))

    @routes.get("/letters/{id}/mail")
    def mail(request: Request, id: str, scheme: str = "light") -> Response:
        desk.visitor(request)
        return mail_page(desk, desk.store.mailout(id), dark=scheme == "dark")

    @routes.get("/letters/{id}/recipients.csv")
    def recipients(request: Request, id: str) -> Response:
        desk.visitor(request, admin=True)
        name = f"mailout-{desk.store.mailout(id).id}.csv"
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
        lines: Iterator[str] = csv_lines(desk.store, id)
        return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)

    return routes


def offer_for(desk: Desk, mailout: Mailout) -> Offer:
    """A request names a page, or a Markdown file by its path; a file's own `id` does not lead back to it."""
    written = mailout.ref.lower().endswith((".md", ".markdown")) and Path(mailout.ref).is_file()
    known = page_id_of(mailout.ref) is not None or written
    real = mailout_or_none(desk.store, ids.mailout_id(mailout.ref))
    if real and real.status is Status.CANCELLED and not real.ledger.sent + real.ledger.unknown:
        real = None  # cancelled before its first message: it may be sent after all
    return Offer(mailout.ref if known else None, people_for(desk.store, mailout), real)


def _run(desk: Desk, mailout: Mailout) -> str | None:
    """Where Prefect shows the run that sends it, or sent it last."""
    run = history_rows.run_of(desk.store, mailout.id)
    return desk.tools.run_address(run) if run else None


def _modes(desk: Desk, show: str) -> Sequence[str]:
    shown = modes_shown(desk.queue_forecast.rehearses)
    return [one for one in ("rehearsal", "test") if one not in shown] if show == "trials" else shown


def page_key(written: str) -> tuple[float, str] | None:
    at, _, id = written.partition("~")
    try:
        return float(at), id
    except ValueError:
        return None


def _standing(desk: Desk, mailout: Mailout) -> dict[str, Any]:
    """What moves while it is sent."""
    now = desk.store.now()
    goes_on_by = mailout.goes_on_by(now, desk.settings.lock_seconds)
    forecast = desk.queue_forecast.forecast(mailout.id) if mailout.status in OPEN else None
    return {
        "mailout": mailout,
        "mode": mode(mailout),
        "alone": left_alone(mailout, goes_on_by, desk.zone) if goes_on_by is not None else "",
        "archived": archived(mailout, desk.zone),
        "forecast": forecast_text(forecast, desk.zone) if forecast else "",
        "held": mailout.defer_reason in WAITS_FOR_A_PERSON,
        "advice": [step.advice for step in resuming(mailout)],
        "ledger": [(c.value, name, n, MEANINGS[c]) for c, name, n in ledger_numbers(mailout.ledger)],
        "verdicts": VERDICTS,
    }


def _drafts(desk: Desk, request: Request, session: LoginSession) -> Response:
    """The pages in Notion that are written or Ready, as the gateway's watch read them last."""
    return desk.views.page(
        request,
        "drafts.html.j2",
        session,
        filters=NAMES,
        read=history_rows.written_pages(desk.store),
        now=desk.store.now(),
        has_notion=bool(desk.settings.notion_token and desk.settings.notion_db_mailouts),
        in_notion=_in_notion,
    )


def _in_notion(ref: str) -> str:
    """The page's address."""
    try:
        return f"https://www.notion.so/{UUID(ref).hex}"
    except ValueError:
        return ""


VERDICTS = {
    SettleVerdict.SENT: "They arrived: the provider's records or the people say so. Nothing is sent.",
    SettleVerdict.FAILED: "They did not arrive, and nothing more is sent to them.",
    SettleVerdict.PENDING: "They did not arrive: send them again. If that is wrong, somebody gets it twice.",
}


def _numbers(desk: Desk, session: LoginSession, mailout: Mailout) -> dict[str, Any]:
    summary = summary_of(desk.store, mailout, None)
    if not session.is_admin:
        summary = summary.redacted()
    return {
        # Our own SVG: everything in it is escaped where it is built.
        "wide": Markup(plot(summary, width=WIDE, zone=desk.zone, styled=False)),  # noqa: S704
        "narrow": Markup(plot(summary, width=NARROW, zone=desk.zone, styled=False)),  # noqa: S704
        "summary": summary,
        "chart": events_chart(desk.store, mailout.id, desk.zone),
        "details": list(details(summary, desk.zone)),
    }


def _what_if(desk: Desk, request: Request, mailout: Mailout) -> str:
    """The same simulation with another rate or window; nothing is changed."""
    asked = request.query_params
    if mailout.status not in OPEN or not (asked.get("rate") or asked.get("window")):
        return ""
    try:
        window = SendWindow.parse(asked["window"]) if asked.get("window") else None
        rate = min(1000.0, max(0.1, float(asked["rate"]))) if asked.get("rate") else None
    except ValueError as error:
        return f"That cannot be calculated: {error}."
    played = desk.queue_forecast.what_if(rate=rate, window=window).forecast(mailout.id)
    return f"Then: {forecast_text(played, desk.zone)}." if played else ""
