"""Mailouts that are asked for: by a page whose status says so, or from outside, over HTTP."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Mapping, Sequence

from mailout.base import error_log, ids
from mailout.base.error_log import ERROR_TABLE, ErrorRecord
from mailout.base.errors import (
    Abort,
    MailoutError,
    SettingsError,
    SourceError,
    SourceRefused,
    SourceUnavailable,
    StoreError,
)
from mailout.base.select import Writes
from mailout.insight.history import history_rows, notion_troubles
from mailout.insight.page_status import report_rows
from mailout.insight.page_status.port import PageReporter
from mailout.insight.page_status.state import awaits_test
from mailout.kinds.articles.order import ArticleOrder
from mailout.kinds.mailouts.mailouts import MailoutIntake
from mailout.kinds.mailouts.readiness import AlreadySent, TakenBack
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import Mailout
from mailout.outbox.queue.port import Request, RequestKind, mailout_or_none

log = logging.getLogger("mailout.requests")

DONE_BY_HAND_SECONDS = 7 * 86_400.0
"""What was set to done longer ago is history: it may come from before this database had a `sent_at`."""
SET_TO_DONE = "set_to_done_by_hand"
AGAIN_SECONDS = 60.0
"""What could not be read is not read again before, in the same run: everybody's letters would wait for it."""
EVENT_SECONDS = 30.0
"""How long a request's own event may take to start its flow; after that the queue enqueues it."""


Enqueue = Callable[[str, bool | None, float | None], Mailout]
"""Reads and renders a page or file (for a test or not, asked for when) into the queue:
`MailoutIntake.enqueue`, or the same in steps to see."""
Waited = dict[str, tuple[float, SourceError]]
"""In one run of the queue: pages and files that could not be read, since when and why."""


def answer(
    intake: MailoutIntake, request: Request, enqueue: Enqueue | None = None, *, by_hand: bool = False
) -> Mailout | None:
    """Enqueue what was asked for; None: its page does not ask to be sent (yet), or an article has no reader.

    Once it is in the queue, or refused for good, the request is answered; what could not be read just now is
    asked again in a minute. Killed in between, it is enqueued again, as the same mailout. What nobody
    foresaw counts as refused: it would come again every minute. `by_hand`: a person waits for the answer.
    """
    asked_at = None if by_hand else intake.store.now()
    try:
        mailout = _enqueue_requested(intake, request, enqueue or intake.enqueue, asked_at)
    except _NotYet:
        return None
    except (StoreError, SourceUnavailable, TakenBack):
        raise
    except Exception as error:
        if not isinstance(error, Abort):  # an abort has been written down
            intake.store.put(ERROR_TABLE, [_refusal(request.ref, error)])
        intake.store.answered(request)
        raise
    intake.store.answered(request)
    return mailout


def _enqueue_requested(
    intake: MailoutIntake, request: Request, enqueue: Enqueue, asked_at: float | None
) -> Mailout | None:
    if request.how is RequestKind.ARTICLE:
        return intake.articles.enqueue(ArticleOrder.from_ref(request.ref))
    if request.if_ready:
        return _enqueue_if_ready(intake, request, enqueue)
    return enqueue(request.ref, request.test, asked_at)


def still_asked(intake: MailoutIntake, request: Request) -> bool:
    """Whether it waits for an answer. An event may be so late that the queue has found the request first."""
    return request in queue_rows.asked(intake.store, waiting=0)


def enqueue_requested(
    intake: MailoutIntake, enqueue: Enqueue | None = None, waited: Waited | None = None
) -> list[Mailout]:
    """Requests whose event was lost, or whose flow died before it had read them.

    What goes wrong with one is no reason for the queue to stop.
    """
    taken, waiting, waited = [], dict[str, MailoutError](), {} if waited is None else waited
    for request in queue_rows.asked(intake.store, waiting=EVENT_SECONDS):
        if _waits(intake, request.ref, waited):
            waiting[request.ref] = waited[request.ref][1]
            continue
        try:
            mailout = answer(intake, request, enqueue)
        except StoreError:
            raise
        except TakenBack as error:
            log.info("%s", error)
        except MailoutError as error:
            log.warning("%s was asked for and is not sent: %s", request.ref, error)
            if isinstance(error, SourceUnavailable):
                waiting[request.ref] = error
                waited[request.ref] = intake.store.now(), error
        except Exception:
            log.exception("%s was asked for and is not sent", request.ref)
        else:
            taken += [] if mailout is None else [mailout]
    notion_troubles.keep(intake.store, notion_troubles.ASKED, waiting)
    return taken


def enqueue_ready(
    intake: MailoutIntake, enqueue: Enqueue | None = None, waited: Waited | None = None
) -> list[Mailout]:
    """Write every page that asks for it into the queue; what pages do not show yet is written first.

    A page that must not be sent asks no more, and the errors database says why. A page that cannot be read
    just now is asked again in a minute.
    """
    asked_at = intake.store.now()
    reporter, refs = _ready_pages(intake, asked_at)
    if reporter is None:
        return []
    _note_pause(intake, [])
    _point_out_done_by_hand(intake, reporter)
    told_later, planned = _told_later(intake), _planned(intake)
    taken, waiting = [], dict[str, MailoutError]()
    enqueue, waited = enqueue or intake.enqueue, {} if waited is None else waited
    for ref in refs:
        if ref in planned:
            intake.pages.show_planned(ref, planned[ref])
        if ref in planned or ref in told_later:
            continue
        if _waits(intake, ref, waited):
            waiting[ref] = waited[ref][1]
            continue
        try:
            mailout = _enqueue(intake, ref, enqueue, asked_at)
        except TakenBack as error:
            log.info("%s", error)
        except SourceError as error:
            log.warning("%s could not be read: %s", ref, error)
            waiting[ref] = error
            waited[ref] = intake.store.now(), error
        else:
            taken += [] if mailout is None else [mailout]
    _note_waiting(intake, waiting, {*told_later, *planned, *(one.ref for one in taken)})
    return taken


def _waits(intake: MailoutIntake, ref: str, waited: Waited) -> bool:
    return ref in waited and intake.store.now() < waited[ref][0] + AGAIN_SECONDS


def show_all_is_paused(intake: MailoutIntake) -> None:
    """Every page that asks to be sent says why it waits: until everything is resumed, none is read."""
    reporter, refs = _ready_pages(intake, intake.store.now())
    if reporter is not None:
        told = {*_told_later(intake), *_planned(intake)}  # another note says what these wait for
        _note_pause(intake, [ref for ref in refs if ref not in told], told)


def _note_pause(intake: MailoutIntake, waiting: Sequence[str], told: Container[str] = ()) -> None:
    """On these pages, and no longer on those that were waiting before."""
    noted = list(waiting)
    for ref in waiting:
        intake.pages.show_paused(ref, True)
    before = history_rows.paused_pages(intake.store)
    for ref in before:
        if ref not in waiting and ref not in told and not intake.pages.show_paused(ref, False):
            noted.append(ref)  # Notion is away: again at the next look
    if before or noted:
        history_rows.keep_paused_pages(intake.store, noted)


def _ready_pages(intake: MailoutIntake, now: float) -> tuple[PageReporter | None, Sequence[str]]:
    """What pages do not show yet is written first. No reporter: Notion cannot be asked just now."""
    intake.pages.update_due()
    reporter = intake.pages.reporter
    if reporter is None:
        notion_troubles.forget(intake.store)
    if reporter is None or intake.pages.away:
        return None, []
    try:
        return reporter, ready_pages(intake.store, reporter, now)
    except StoreError:
        raise
    except MailoutError as error:
        log.warning("Notion was not asked for new mailouts: %s", error)
        return None, []


def ready_pages(store: Writes, reporter: PageReporter, now: float) -> Sequence[str]:
    """Whether Notion could be asked is noted: while it cannot, letters wait."""
    try:
        refs = reporter.ready(now)
    except StoreError:
        raise
    except MailoutError as error:
        notion_troubles.keep(store, notion_troubles.READING, {"": error})
        raise
    notion_troubles.keep(store, notion_troubles.READING, {})
    return refs


def _note_waiting(intake: MailoutIntake, waiting: Mapping[str, MailoutError], told: Container[str]) -> None:
    """Pages that ask and cannot be read now; those for which that lasts say so, until they ask no more."""
    before = [one.page for one in notion_troubles.lasting(intake.store) if one.kind == notion_troubles.PAGE]
    notion_troubles.keep(intake.store, notion_troubles.PAGE, waiting)
    for one in notion_troubles.lasting(intake.store):
        if one.page in waiting:
            intake.pages.show_unreadable(one.page, waiting[one.page])
    for ref in before:
        if ref not in waiting and ref not in told:  # of those another note says how they stand
            intake.pages.show_unreadable(ref, None)


class _NotYet(Exception):
    """The page asks to be sent later, and nobody but its request will think of it."""


def _enqueue_if_ready(intake: MailoutIntake, request: Request, enqueue: Enqueue) -> Mailout | None:
    """The one page that was asked for, if it asks to be sent. An outage is raised: the request then waits."""
    reporter, ref = intake.pages.reporter, request.ref
    if reporter is None:
        raise SettingsError("NOTION_TOKEN: is missing, and this is a Notion page.", remedy="Set it.")
    intake.pages.update_due()
    if intake.pages.away:
        raise SourceUnavailable("Notion was away a moment ago.")
    if ref in _told_later(intake) or ref in _planned(intake):
        return None
    asked_at = intake.store.now()
    ready_at = _ready_at(intake, reporter, request)
    if ready_at is None:
        return None
    if ready_at > asked_at:
        if reporter.finds_ready:
            return None
        raise _NotYet
    return _enqueue(intake, ref, enqueue, asked_at)


def _ready_at(intake: MailoutIntake, reporter: PageReporter, request: Request) -> float | None:
    """When the page asks to be sent; None: it does not.

    An event that comes while the page is being read counts as the request that is being answered. So where
    nobody else would find the page, it is read again as soon as another event counts as a new request.
    """
    ready_at = reporter.ready_at(request.ref)
    if ready_at is not None or reporter.finds_ready:
        return ready_at
    intake.store.answered(request)
    try:
        ready_at = reporter.ready_at(request.ref)
    except BaseException:
        intake.store.ask(request, repeat=0.0)
        raise
    if ready_at is not None:
        intake.store.ask(request, repeat=0.0)
    return ready_at


def _planned(intake: MailoutIntake) -> dict[str, float]:
    """A person chose when they go out; that their pages say Ready brings none of them forward."""
    return {one.ref: one.not_before or 0.0 for one in queue_rows.planned(intake.store)}


def _told_later(intake: MailoutIntake) -> set[str]:
    """A page that does not show yet how it went asks no more, whatever it says; except for a test that
    there has to be."""
    due = (intake.store.mailout(id) for id in report_rows.due_reports(intake.store))
    return {mailout.ref for mailout in due if not awaits_test(mailout)}


def _point_out_done_by_hand(intake: MailoutIntake, reporter: PageReporter) -> None:
    """Whoever sets a page to done means to send it, and waits in vain: once, an error and a line say so."""
    store, said = intake.store, intake.done_by_hand
    try:
        for ref in reporter.done_by_hand(store.now() - DONE_BY_HAND_SECONDS):
            known = mailout_or_none(store, ids.mailout_id(ref))
            if (known and known.ref == ref) or any(
                e.code == SET_TO_DONE for e in error_log.errors(store, ref)
            ):
                continue
            reporter.note(ref, said)
            store.put(ERROR_TABLE, [ErrorRecord(SET_TO_DONE, said, "content", mailout=ref)])
    except StoreError:
        raise
    except MailoutError as error:
        log.warning("Notion was not asked for pages that were set to done: %s", error)
    intake.pages.report_errors()


def _enqueue(intake: MailoutIntake, ref: str, enqueue: Enqueue, asked_at: float) -> Mailout | None:
    """None: it must not be sent, and its page says so; or it has just been sent."""
    try:
        mailout = enqueue(ref, None, asked_at)
    except AlreadySent as sent:
        log.log(logging.INFO if sent.is_same_ask(asked_at) else logging.WARNING, "%s: %s", ref, sent)
        return None
    except (StoreError, SourceUnavailable, SourceRefused, TakenBack):
        raise
    except Exception as error:
        foreseen = isinstance(error, MailoutError)
        log.warning("%s is not sent: %s", ref, error, exc_info=None if foreseen else error)
        if not isinstance(error, Abort):  # an abort has been written down
            since = intake.store.now() - error_log.SAME_REFUSAL_SECONDS
            error_log.record_once(intake.store, _refusal(ref, error), since)
            intake.pages.refuse(ref, error)
        return None
    shown = intake.pages.update(mailout.id)
    if mailout.is_test and not shown:
        # It would ask again every minute, and every answer would be another mail.
        intake.store.cancel(mailout.id)
        reporter = intake.pages.reporter
        if reporter is not None and reporter.ready_at(ref) is not None:
            intake.store.discard_unbegun(mailout.id)  # or there would be another one every minute
        raise SourceUnavailable("It is not tried out: its page could not be updated.")
    return mailout


def _refusal(ref: str, error: Exception) -> ErrorRecord:
    said = str(error) if isinstance(error, MailoutError) else f"{type(error).__name__}: {error}"
    return ErrorRecord("cannot_be_sent", said, "content", mailout=ref)
