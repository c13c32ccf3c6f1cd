"""Letters, and one letter: what it is, how it stands, why it waits, what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from markupsafe import Markup

from gateway.dashboard.desk import Desk, page_route
from gateway.dashboard.letter_numbers import (
    PLOTTED_MESSAGES,
    events_chart,
    is_counted,
    letters_chart,
    modes_shown,
    people_for,
    summary_of,
    timeline,
)
from gateway.dashboard.mail_view import VIEWS, content_of, letter_view, mail_page
from gateway.dashboard.people_counts import COUNTED_LIVE_PEOPLE, people_now
from gateway.dashboard.planned import PlannedLetter, draft_page, planned_letters
from gateway.dashboard.sessions import LoginSession
from gateway.dashboard.troubles import letter_troubles
from mailout.base import error_log, ids
from mailout.base.errors import Abort, MailoutError, NotFound, StoreError
from mailout.insight.history import history_rows
from mailout.insight.history.port import WrittenPage
from mailout.insight.reporting.codes import remedy_of
from mailout.insight.reporting.details import details
from mailout.insight.reporting.phrases import (
    MEANINGS,
    archived,
    count,
    forecast_text,
    ledger_numbers,
    left_alone,
    mode,
    resuming,
)
from mailout.insight.reporting.plot import NARROW, WIDE, plot
from mailout.insight.reporting.rows import csv_lines
from mailout.insight.reporting.summary import Summary
from mailout.letters.audience.segment_tree import SegmentError
from mailout.letters.content.checks import check_content
from mailout.letters.content.refs import page_id_of, page_url
from mailout.outbox.queue import actions, queue_rows, segment_names
from mailout.outbox.queue.actions import SettleVerdict
from mailout.outbox.queue.mailout import WAITS_FOR_A_PERSON, Mailout, Status
from mailout.outbox.queue.port import mailout_or_none
from mailout.outbox.queue.snapshot import OPEN

LETTERS_PER_PAGE = 50
LETTERS_COMPARED = 20
DRAFTS, FAILED, OVER_TIME = "drafts", "failed", "numbers"
FILTERS: dict[str, tuple[str, Sequence[Status]]] = {
    "": ("All", ()),
    DRAFTS: ("Drafts", ()),
    "waiting": ("Waiting", OPEN),
    "sent": ("Sent", (Status.COMPLETED, Status.CANCELLED)),
    FAILED: ("Failed or stopped", ()),
    OVER_TIME: ("Over time", ()),
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
        if show == FAILED:
            return _failed(desk, request, session)
        if show == OVER_TIME:
            return _over_time(desk, request, session)
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
            planned=planned_letters(desk) if not before and show in ("", "waiting") else (),
        )

    @routes.get("/letters/drafts")
    def drafts(request: Request) -> Response:
        """The list alone, as Notion says now."""
        session = desk.visitor(request)
        return desk.views.page(request, "drafts_list.html.j2", session, **_written(desk, look=True))

    @routes.get("/letters/{id}")
    def letter(request: Request, id: str, view: str = "desktop", count: bool = False) -> Response:
        session = desk.visitor(request)
        try:
            mailout = desk.store.mailout(id)
        except NotFound:
            if page_id_of(id) is None:
                raise
            return RedirectResponse(draft_page(id), 303)  # it never became a letter: its page has the reason
        before = mailout.status in OPEN or mode(mailout) != "real"
        quick = count or not is_counted(mailout) or sum(people_now(desk).values()) < COUNTED_LIVE_PEOPLE
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
            mail=letter_view(desk, request, mailout),
            reader=request.query_params.get("as", ""),
            in_notion=page_url(mailout.ref) or "",
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
        return mail_page(desk, letter_view(desk, request, desk.store.mailout(id)), dark=scheme == "dark")

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
    forecast = None
    if mailout.status in OPEN and goes_on_by is None:
        snapshot = desk.queue_forecast.snapshot()
        if snapshot.is_moving(desk.settings.lock_seconds):  # else nobody is there to keep to it
            forecast = snapshot.forecasts.get(mailout.id)
    refused = len(actions.refused_by_checks(desk.store, mailout))
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
        "refused": refused,
        "plots": _plots(desk, mailout),
        "chart": events_chart(desk.store, mailout, desk.zone),
    }


def _plots(desk: Desk, mailout: Mailout) -> tuple[Markup, Markup] | None:
    """Messages over time, for a wide and a narrow page, as of now."""
    if mailout.ledger.sent < PLOTTED_MESSAGES:
        return None
    over_time = timeline(desk.store, mailout.id)
    if over_time is None or over_time.start == over_time.end:
        return None
    summary = Summary(mailout=mailout, as_of=desk.store.now(), timeline=over_time)
    wide, narrow = (plot(summary, width=width, zone=desk.zone, styled=False) for width in (WIDE, NARROW))
    # Our own SVG: everything in it is escaped where it is built.
    return Markup(wide), Markup(narrow)  # noqa: S704


def _drafts(desk: Desk, request: Request, session: LoginSession) -> Response:
    """The pages in Notion that are written, Ready or failed. What is known is shown at once, and what Notion
    says now follows."""
    look = request.query_params.get("look") == "1"
    return desk.views.page(
        request, "drafts.html.j2", session, filters=NAMES, looked=look, **_written(desk, look=look)
    )


def _written(desk: Desk, *, look: bool) -> dict[str, Any]:
    problem = ""
    if look and desk.tools.drafts is not None:
        try:
            desk.tools.drafts.look()
        except StoreError:
            raise
        except MailoutError as error:
            problem = str(error)
    read = history_rows.written_pages(desk.store)
    pages = read.pages if read else ()
    planned = {one.ref: one for one in planned_letters(desk)}
    real = history_rows.latest_of(desk.store, [page.ref for page in pages])
    over = (Status.COMPLETED, Status.CANCELLED)
    shown = [
        page for page in pages if not (page.is_failed and page.ref in real and real[page.ref].status in over)
    ]
    return {
        "read": read,
        "rows": [(page, why_not_yet(desk, page, planned.get(page.ref))) for page in shown],
        "draft_page": draft_page,
        "problem": problem,
        "can_look": desk.tools.drafts is not None,
        "has_notion": bool(desk.settings.notion_token and desk.settings.notion_db_mailouts),
    }


def why_not_yet(desk: Desk, page: WrittenPage, planned: PlannedLetter | None) -> str:
    """What happens with a page next, or why nothing does."""
    if planned is not None:
        return f"It {planned.said}."
    if page.is_failed:
        stopped = next(iter(error_log.errors(desk.store, page.ref, limit=1)), None)
        return f"It was not sent: {stopped.message}" if stopped else "Its sending failed."
    if not page.is_ready:
        return ""
    if queue_rows.all_paused(desk.store):
        return "Ready, but everything is paused."
    if page.is_test:
        return "Ready as a test: it goes to the test addresses within a minute."
    return "Ready: it is read and sent within a minute or two."


def _failed(desk: Desk, request: Request, session: LoginSession) -> Response:
    hide = not session.is_admin
    held = queue_rows.needing_a_person(desk.store)
    links = {f"/letters/{one.id}" for one in held}
    return desk.views.page(
        request,
        "letters_failed.html.j2",
        session,
        filters=NAMES,
        held=held,
        troubles=[one for one in letter_troubles(desk, hide=hide) if one.link not in links],
    )


def _over_time(desk: Desk, request: Request, session: LoginSession) -> Response:
    modes = modes_shown(desk.queue_forecast.rehearses)
    sent = history_rows.letters(desk.store, modes=modes, statuses=[Status.COMPLETED], limit=LETTERS_COMPARED)
    return desk.views.page(
        request,
        "letters_numbers.html.j2",
        session,
        filters=NAMES,
        letters=sent,
        chart=letters_chart(sent, desk.zone),
    )


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
        "summary": summary,
        "details": list(details(summary, desk.zone)),
    }


def findings(desk: Desk, mailout: Mailout, size: int) -> Sequence[tuple[str, str]]:
    """(level, sentence) of what to look at before it is sent."""
    found: list[tuple[str, str]] = []
    content = content_of(desk.store, mailout)
    if content is not None:
        try:
            found += [("warn", f"{p.message} {p.where or ''}".strip()) for p in check_content(content)]
        except Abort as error:
            found.append(("fail", error.message))
    known = {said for _, said in found}
    for one in error_log.errors(desk.store, mailout.id, limit=50):
        if one.stage == "content" and one.message not in known:
            known.add(one.message)
            found.append(("warn", one.message))
    if not mailout.is_test and mailout.content_hash is not None:
        found.append(tested(desk, mailout.content_hash))
    found += would_get_it(desk, size, mailout.list_key, mailout.segment)
    return found + (snoozed(desk, mailout.list_key) if is_counted(mailout) else [])


def tested(desk: Desk, content_hash: str) -> tuple[str, str]:
    if queue_rows.last_test(desk.store, content_hash=content_hash) is not None:
        return "ok", "A test of exactly this content has gone out."
    return "warn", "No test of exactly this content has gone out."


def snoozed(desk: Desk, list_key: str | None) -> list[tuple[str, str]]:
    people = desk.store.audience_size(list_key, snoozed=True)
    said = f"{count(people, 'person', 'people')} asked for a pause and would not get it."
    return [("ok", said)] if people else []


def would_get_it(desk: Desk, size: int, list_key: str | None, segment: str | None) -> list[tuple[str, str]]:
    """How many, and why a segment cannot be used, if so."""
    whom = f" on the list {list_key}" if list_key else ""
    whom += f" in the segment {segment}" if segment else ""
    found = [("ok" if size else "fail", f"{count(size, 'person', 'people')}{whom} would get it.")]
    if segment is not None and not size:
        try:
            segment_names.usable_segment(desk.store, segment)
        except SegmentError as error:
            found.append(("fail", str(error)))
    return found
