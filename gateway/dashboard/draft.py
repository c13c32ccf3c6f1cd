"""A draft is a letter: what is written in Notion, how it looks, what to check, and how it is sent: as a test,
now, or at a time. Whoever sends it stays here until it starts."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any

from fastapi import Response
from fastapi.responses import RedirectResponse

from gateway.dashboard.desk import Action, AdminAct, AnyAct, Desk, Visit, Visitor, page_routes
from gateway.dashboard.letter import sent_already, snoozed, tested, would_get_it
from gateway.dashboard.letter_acts import ask, check_new, check_number
from gateway.dashboard.letter_numbers import people_on
from gateway.dashboard.letters import draft_page, planned_letters, why_not_yet
from gateway.dashboard.mail_view import mail_page, mail_view
from gateway.dashboard.troubles import REFUSED_BEFORE, is_past
from gateway.dashboard.views import HEADERS
from mailout.base import error_log
from mailout.base.errors import AbortCode, MailoutError, NotFound, SourceError, StoreError, UsageError
from mailout.base.time_format import local_minute
from mailout.insight.history import history_rows
from mailout.insight.history.port import WrittenPage
from mailout.kinds.mailouts.drafts import Draft
from mailout.letters.content.refs import page_id_of, page_url
from mailout.letters.content.sample import plain_subject
from mailout.outbox.delivery.single_mails import UNSERVED_SECONDS
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import Mailout
from mailout.outbox.queue.port import Request as Asked
from mailout.outbox.queue.port import RequestKind

MOST_DAYS_AHEAD = 366
ASKED_JUST_NOW_SECONDS = 120.0
"""A letter that came into the queue so shortly before is the one that was asked for here."""


routes = page_routes()


@routes.get("/draft")
def draft(visit: Visitor, ref: str = "", view: str = "", read: bool = False) -> Response:
    desk = visit.desk
    ref = _known(desk, ref)
    real = sent_already(desk, ref)
    if real is not None:
        return RedirectResponse(f"/letters/{real.id}", 303, headers={"Cache-Control": "no-store"})
    return visit.page(
        "draft.html.j2",
        view=view,
        reader=visit.request.query_params.get("as", ""),
        part=_part(visit, ref) if read else None,
        **_standing(desk, ref),
    )


@routes.get("/draft/letter")
def part(visit: Visitor, ref: str = "", view: str = "") -> Response:
    """What takes a moment: the page is read from Notion and rendered."""
    ref = _known(visit.desk, ref)
    return visit.page(
        "draft_letter.html.j2",
        view=view,
        reader=visit.request.query_params.get("as", ""),
        part=_part(visit, ref),
        **_standing(visit.desk, ref),
    )


@routes.get("/draft/live")
def live(visit: Visitor, ref: str = "", since: float = 0.0) -> Response:
    """How the request stands; once it is a letter, the whole page goes there."""
    desk = visit.desk
    ref = _known(desk, ref)
    letter = history_rows.latest_of(desk.store, [ref]).get(ref)
    if letter is not None and not letter.is_test and since and letter.created_at >= since:
        return Response(status_code=204, headers={"HX-Redirect": f"/letters/{letter.id}", **HEADERS})
    return visit.page("draft_live.html.j2", **_standing(desk, ref, since))


@routes.get("/draft/mail")
def mail(visit: Visitor, ref: str = "", scheme: str = "light") -> Response:
    desk = visit.desk
    found = _read(desk, _known(desk, ref))
    if isinstance(found, str) or found.content is None:
        return mail_page(desk, None)
    shown = mail_view(desk, visit.request, found.content, found.from_name)
    return mail_page(desk, shown, dark=scheme == "dark")


@routes.post("/draft/test")
def test(act: AnyAct) -> Response:
    return ask(act, _asked_for(act), test=True)


@routes.post("/draft/send")
def send(act: AdminAct) -> Response:
    """Only with the number of people typed by hand, as it is now."""
    ref = _asked_for(act)
    found = _read(act.desk, ref, again=True)
    check_new(sent_already(act.desk, ref))
    if isinstance(found, str):
        raise UsageError(f"Nothing is sent: the page cannot be read. {found}")
    if found.stops:
        raise UsageError(f"Nothing is sent: {found.stops[0]}")
    check_number(act, people_on(act.desk.store, found.list_key, found.segment))
    return ask(act, ref)


@routes.post("/draft/schedule")
def schedule(act: AdminAct) -> Response:
    ref, desk = _asked_for(act), act.desk
    check_new(sent_already(desk, ref))
    said = ask(act, ref, at=moment_of(act.form.get("at"), desk))
    if (started := sent_already(desk, ref)) is not None:  # while this was being chosen
        desk.store.answered(Asked(ref, RequestKind.REAL))
        check_new(started)
    return said


@routes.post("/draft/cancel")
def cancel(act: AdminAct) -> Response:
    """Take back what is asked for and is not a letter yet."""
    ref, desk = _asked_for(act), act.desk
    page = _written(desk, ref)
    if page is not None and page.is_ready:
        raise UsageError(
            f"Nothing is cancelled: its page in Notion says {page.status}, and it would go out within a"
            f" minute. Set it to {desk.settings.notion_status_draft} there first."
        )
    if not desk.store.answered(Asked(ref, RequestKind.REAL)):
        raise UsageError("There is nothing to take back: it is being sent already, or was not asked for.")
    if desk.tools.drafts is not None and page_id_of(ref):
        desk.tools.drafts.taken_back(ref)
    check_new(sent_already(desk, ref))  # it has become a letter at this moment, which is cancelled there
    return act.done("took back a letter", ref, "Taken back: it is a draft again.")


def _written(desk: Desk, ref: str) -> WrittenPage | None:
    """As Notion says now; where it does not answer, as it was said last."""
    if desk.tools.drafts is not None:
        with suppress(SourceError):
            desk.tools.drafts.look()
    return _last_read(desk, ref)


def _last_read(desk: Desk, ref: str) -> WrittenPage | None:
    read = history_rows.written_pages(desk.store)
    return next((one for one in (read.pages if read else ()) if one.ref == ref), None)


def _asked_for(act: Action) -> str:
    ref = _known(act.desk, act.form.get("ref"))
    act.back_to(draft_page(ref))
    return ref


def moment_of(written: str, desk: Desk) -> float:
    """A date and time in the organisation's zone, to come."""
    try:
        at = datetime.fromisoformat(written).replace(tzinfo=desk.zone).timestamp()
    except ValueError:
        raise UsageError("Nothing is scheduled: choose a date and a time.") from None
    now = desk.store.now()
    if at <= now:
        raise UsageError(f"Nothing is scheduled: {desk.views.when(at)} has passed.")
    if at > now + MOST_DAYS_AHEAD * 86_400:
        raise UsageError("Nothing is scheduled: it is more than a year ahead.")
    return at


def _known(desk: Desk, ref: str) -> str:
    """A page, or a file that has been a letter here before: no other file of this machine is read."""
    page = page_id_of(ref)
    if page is None and ref not in history_rows.latest_of(desk.store, [ref]):
        raise NotFound("There is no such letter.")
    return page or ref


def _read(desk: Desk, ref: str, *, again: bool = False) -> Draft | str:
    """The letter as it is written now, or why it cannot be read."""
    if desk.tools.drafts is None:
        return "What is written cannot be read from here."
    try:
        return desk.tools.drafts.read(ref, again=again)
    except StoreError:
        raise
    except MailoutError as error:
        return str(error)


def _part(visit: Visit, ref: str) -> dict[str, Any]:
    desk = visit.desk
    found = _read(desk, ref, again=visit.request.query_params.get("again") == "1")
    if isinstance(found, str):
        return {"problem": found, "draft": None, "mail": None, "findings": [], "size": 0}
    size = people_on(desk.store, found.list_key, found.segment)
    checks = [("fail", said) for said in found.stops]
    checks += [("warn", said) for said in found.findings if not any(said in stop for stop in found.stops)]
    if found.content is not None:
        checks.append(tested(desk, found.content.hash))
    checks += [
        *would_get_it(desk, size, found.list_key, found.segment),
        *snoozed(desk, found.list_key, found.segment),
    ]
    shown = mail_view(desk, visit.request, found.content, found.from_name) if found.content else None
    return {"problem": "", "draft": found, "mail": shown, "findings": checks, "size": size}


def _standing(desk: Desk, ref: str, since: float = 0.0) -> dict[str, Any]:
    """What is known without reading the page: whether it is asked for, planned, refused or tested."""
    store = desk.store
    page = _last_read(desk, ref)
    latest = history_rows.latest_of(store, [ref]).get(ref)
    asked = [one for one in queue_rows.asked(store, waiting=0) if one.ref == ref]
    late = [one for one in queue_rows.unserved(store, UNSERVED_SECONDS) if one.ref == ref]
    real = next((one for one in asked if not one.test), None)
    planned = next((one for one in queue_rows.planned(store) if one.ref == ref), None)
    coming = next((one for one in planned_letters(desk) if one.ref == ref), None)
    subject = page.subject if page else latest.subject if latest else ""
    now = store.now()
    return {
        "ref": ref,
        "subject": plain_subject(subject),
        "page": page,
        "in_notion": page_url(ref) or "",
        "asked": asked,
        "asked_for_real": real is not None,
        "late": real in late if real else bool(late),
        "planned_at": planned.not_before if planned else None,
        "planned_field": local_minute(planned.not_before, desk.zone)
        if planned and planned.not_before
        else "",
        "earliest": local_minute(now, desk.zone),
        "zone_name": str(desk.zone),
        "why_not": why_not_yet(desk, page or WrittenPage(ref, "", "", is_ready=False), coming),
        "refused": "" if asked or planned else _refused(desk, ref, latest, page),
        "tests": latest if latest is not None and latest.is_test else None,
        "paused": queue_rows.all_paused(store),
        "since": since or (now - ASKED_JUST_NOW_SECONDS if asked else 0.0),
    }


def _refused(desk: Desk, ref: str, latest: Mailout | None, page: WrittenPage | None) -> str:
    """Why the last request for it came to nothing; empty: nothing stands in the way since."""
    error = next(iter(error_log.errors(desk.store, ref, limit=1)), None)
    if error is None or (error.code != REFUSED_BEFORE and error.code not in tuple(AbortCode)):
        return ""
    return "" if is_past(error, page, latest) else error.message
