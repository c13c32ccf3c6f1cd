"""One letter: what it is, how it stands, why it waits, what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import Response
from fastapi.responses import RedirectResponse, StreamingResponse
from markupsafe import Markup

from gateway.dashboard.desk import Admin, Desk, Visitor, page_routes
from gateway.dashboard.letter_numbers import (
    PLOTTED_MESSAGES,
    events_chart,
    is_counted,
    people_for,
    people_on,
    summary_of,
    timeline,
)
from gateway.dashboard.letters import draft_page
from gateway.dashboard.mail_view import content_of, letter_view, mail_page
from gateway.dashboard.people import COUNTED_LIVE_PEOPLE, people_now
from gateway.dashboard.troubles import overdue
from mailout.base import error_log, ids
from mailout.base.errors import Abort, NotFound
from mailout.insight.history import history_rows
from mailout.insight.reporting.codes import remedy_of
from mailout.insight.reporting.details import details
from mailout.insight.reporting.phrases import (
    archived,
    count,
    forecast_text,
    ledger_numbers,
    left_alone,
    meaning,
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

VERDICTS = {
    SettleVerdict.SENT: "They arrived: the provider's records or the people say so. Nothing is sent.",
    SettleVerdict.FAILED: "They did not arrive, and nothing more is sent to them.",
    SettleVerdict.PENDING: "They did not arrive: send them again. If that is wrong, somebody gets it twice.",
}

routes = page_routes()


@dataclass(frozen=True, slots=True)
class Offer:
    """What can be done with a letter's page or file."""

    ref: str | None  # what a request would name; None: a file that this machine cannot name
    size: int  # how many people would get it, or get it
    real: Mailout | None  # it has been asked for already


@routes.get("/letters/{id}")
def letter(visit: Visitor, id: str, view: str = "", count: bool = False) -> Response:
    desk = visit.desk
    try:
        mailout = desk.store.mailout(id)
    except NotFound:
        if page_id_of(id) is None:
            raise
        return RedirectResponse(draft_page(id), 303)  # it never became a letter: its page has the reason
    before = mailout.status in OPEN or mode(mailout) != "real"
    quick = count or not is_counted(mailout) or sum(people_now(desk).values()) < COUNTED_LIVE_PEOPLE
    summary = summary_of(desk.store, mailout)
    summary = summary if visit.session.is_admin else summary.redacted()
    run = history_rows.run_of(desk.store, mailout.id)
    return visit.page(
        "letter.html.j2",
        view=view,
        before=before,
        on_web=bool(desk.settings.public_url and mailout.slug),
        run=desk.tools.run_address(run)
        if run
        else None,  # where Prefect shows what sends it, or sent it last
        remedy=remedy_of,
        mail=letter_view(desk, visit.request, mailout),
        reader=visit.request.query_params.get("as", ""),
        in_notion=page_url(mailout.ref) or "",
        summary=summary,
        details=list(details(summary, desk.zone)),
        **(_before(desk, mailout) if before and quick else {"offer": None}),
        **_standing(desk, mailout),
    )


@routes.get("/letters/{id}/before")
def before(visit: Visitor, id: str) -> Response:
    mailout = visit.desk.store.mailout(id)
    return visit.page("letter_before.html.j2", mailout=mailout, **_before(visit.desk, mailout))


@routes.get("/letters/{id}/live")
def live(visit: Visitor, id: str) -> Response:
    return visit.page("letter_live.html.j2", **_standing(visit.desk, visit.desk.store.mailout(id)))


@routes.get("/letters/{id}/mail")
def mail(visit: Visitor, id: str, scheme: str = "light") -> Response:
    view = letter_view(visit.desk, visit.request, visit.desk.store.mailout(id))
    return mail_page(visit.desk, view, dark=scheme == "dark")


@routes.get("/letters/{id}/recipients.csv")
def recipients(visit: Admin, id: str) -> Response:
    name = f"mailout-{visit.desk.store.mailout(id).id}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    lines = csv_lines(visit.desk.store, id)
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)


def _before(desk: Desk, mailout: Mailout) -> dict[str, Any]:
    offer = offer_for(desk, mailout)
    return {"offer": offer, "findings": findings(desk, mailout, offer.size)}


def offer_for(desk: Desk, mailout: Mailout) -> Offer:
    """A request names a page, or a Markdown file by its path; a file's own `id` does not lead back to it."""
    written = mailout.ref.lower().endswith((".md", ".markdown")) and Path(mailout.ref).is_file()
    known = page_id_of(mailout.ref) is not None or written
    size = people_for(desk.store, mailout)
    return Offer(mailout.ref if known else None, size, sent_already(desk, mailout.ref))


def sent_already(desk: Desk, ref: str) -> Mailout | None:
    """The real letter, unless it was cancelled before its first message: then it may be sent after all."""
    real = mailout_or_none(desk.store, ids.mailout_id(ref))
    if real and real.status is Status.CANCELLED and not real.ledger.sent + real.ledger.unknown:
        return None
    return real


def _standing(desk: Desk, mailout: Mailout) -> dict[str, Any]:
    """What moves while it is sent."""
    now = desk.store.now()
    goes_on_by = mailout.goes_on_by(now, desk.settings.lock_seconds)
    forecast = None
    if mailout.status in OPEN and goes_on_by is None:
        snapshot = desk.queue_forecast.snapshot()
        if snapshot.is_moving(desk.settings.lock_seconds):  # else nobody is there to keep to it
            forecast = snapshot.forecasts.get(mailout.id)
    return {
        "mailout": mailout,
        "all_paused": queue_rows.all_paused(desk.store),
        "untaken": mailout.is_overdue(now) and mailout.id in {one.id for one in overdue(desk)},
        "alone": left_alone(mailout, goes_on_by, desk.zone) if goes_on_by is not None else "",
        "archived": archived(mailout, desk.zone),
        "forecast": forecast_text(forecast, desk.zone) if forecast else "",
        "held": mailout.defer_reason in WAITS_FOR_A_PERSON,
        "advice": [step.advice for step in resuming(mailout)],
        "ledger": [(c.value, name, n, meaning(c, mailout)) for c, name, n in ledger_numbers(mailout.ledger)],
        "verdicts": VERDICTS,
        "refused": len(actions.refused_by_checks(desk.store, mailout)),
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
    return found + (snoozed(desk, mailout.list_key, mailout.segment) if is_counted(mailout) else [])


def tested(desk: Desk, content_hash: str) -> tuple[str, str]:
    if queue_rows.last_test(desk.store, content_hash=content_hash) is not None:
        return "ok", "A test of exactly this content has gone out."
    if desk.settings.rehearses:
        return "warn", "Tests become files here: nobody has got one of exactly this content."
    return "warn", "No test of exactly this content has gone out."


def snoozed(desk: Desk, list_key: str | None, segment: str | None) -> list[tuple[str, str]]:
    people = people_on(desk.store, list_key, segment, snoozed=True)
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
