"""Letters in lists: those in the queue and before it, drafts, what failed, and the last ones side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from fastapi import Response

from gateway.dashboard.desk import Desk, Visitor, page_routes
from gateway.dashboard.letter_numbers import letters_charts
from gateway.dashboard.troubles import held_and_failed
from mailout.base import error_log
from mailout.base.errors import MailoutError, StoreError
from mailout.base.time_format import spoken
from mailout.insight.history import history_rows
from mailout.insight.history.port import WrittenPage
from mailout.letters.content.port import Kind
from mailout.letters.content.sample import plain_subject
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import Status
from mailout.outbox.queue.port import Request, RequestKind
from mailout.outbox.queue.snapshot import OPEN

LETTERS_PER_PAGE = 50
LETTERS_COMPARED = 20
NAMES = {
    "": "All",
    "drafts": "Drafts",
    "waiting": "Waiting",
    "sent": "Sent",
    "failed": "Failed or stopped",
    "numbers": "Over time",
    "trials": "Tests and rehearsals",
}
STATUSES = {"waiting": OPEN, "sent": (Status.COMPLETED, Status.CANCELLED)}

routes = page_routes()


@routes.get("/letters")
def letters(visit: Visitor, show: str = "", before: str = "", look: str = "") -> Response:
    desk = visit.desk
    show = show if show in NAMES else ""
    match show:
        case "drafts":
            # What is known is shown at once, and what Notion says now follows.
            looked = look == "1"
            return visit.page("drafts.html.j2", filters=NAMES, looked=looked, **_written(desk, look=looked))
        case "failed":
            held, troubles = held_and_failed(desk)
            return visit.page("letters_failed.html.j2", filters=NAMES, held=held, troubles=troubles)
        case "numbers":
            sent = history_rows.letters(
                desk.store, modes=desk.modes, statuses=[Status.COMPLETED], limit=LETTERS_COMPARED
            )
            charts = letters_charts(sent, desk.zone)
            return visit.page("letters_numbers.html.j2", filters=NAMES, letters=sent, charts=charts)
    trials = [one for one in ("rehearsal", "test") if one not in desk.modes]
    modes = trials if show == "trials" else desk.modes
    return visit.page(
        "letters.html.j2",
        filters=NAMES,
        show=show,
        planned=planned_letters(desk) if not before and show in ("", "waiting") else (),
        all_paused=queue_rows.all_paused(desk.store),
        **one_page(desk, before, modes, STATUSES.get(show, ())),
    )


@routes.get("/letters/drafts")
def drafts(visit: Visitor) -> Response:
    """The list alone, as Notion says now."""
    return visit.page("drafts_list.html.j2", **_written(visit.desk, look=True))


def one_page(
    desk: Desk,
    before: str,
    modes: Sequence[str],
    statuses: Sequence[Status] = (),
    kind: Kind | None = None,
) -> dict[str, Any]:
    """`before` is what the page before gave as `more`."""
    at, _, id = before.partition("~")
    try:
        key = (float(at), id)
    except ValueError:
        key = None
    found = history_rows.letters(
        desk.store, modes=modes, statuses=statuses, kind=kind, before=key, limit=LETTERS_PER_PAGE + 1
    )
    last = found[LETTERS_PER_PAGE - 1] if len(found) > LETTERS_PER_PAGE else None
    more = f"{last.created_at!r}~{last.id}" if last else ""
    return {"letters": found[:LETTERS_PER_PAGE], "more": more}


def _written(desk: Desk, *, look: bool) -> dict[str, Any]:
    """The pages in Notion that are written, Ready or failed."""
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


@dataclass(frozen=True, slots=True)
class PlannedLetter:
    ref: str
    subject: str
    said: str  # what happens with it, and when
    link: str


def planned_letters(desk: Desk) -> Sequence[PlannedLetter]:
    """Those that are being read, then those with a time, the soonest first."""
    store = desk.store
    asked, planned = queue_rows.asked(store, waiting=0), queue_rows.planned(store)
    read = history_rows.written_pages(store)
    pages = {page.ref: page for page in (read.pages if read else ())}
    unnamed = [one.ref for one in (*asked, *planned) if one.ref not in pages]
    letters = history_rows.latest_of(store, unnamed)

    def named(ref: str, said: str) -> PlannedLetter:
        known = pages.get(ref) or letters.get(ref)
        return PlannedLetter(
            ref, plain_subject(known.subject) if known else "A letter", said, draft_page(ref)
        )

    paused = queue_rows.all_paused(store)
    found = [
        PlannedLetter("", "An article", _requested(one, paused), "/articles")
        if one.how is RequestKind.ARTICLE
        else named(one.ref, _requested(one, paused))
        for one in asked
    ]
    timed = [(one.not_before or 0.0, one.ref, "") for one in planned]
    now, chosen = store.now(), {one.ref for one in planned}
    timed += [
        (page.send_at, page.ref, " (Ready in Notion)")
        for page in pages.values()
        if page.is_ready and page.send_at and page.send_at > now and page.ref not in chosen
    ]
    return found + [named(ref, f"goes out {spoken(at, desk.zone)}{how}") for at, ref, how in sorted(timed)]


def _requested(one: Request, paused: bool) -> str:
    if paused:
        return "was requested and waits: everything is paused"
    if one.how is RequestKind.ARTICLE:
        return "was asked for and is being put together"
    return "was asked for as a test and is being read" if one.test else "is being read and starts"


def draft_page(ref: str) -> str:
    return f"/draft?ref={quote(ref, safe='')}"
