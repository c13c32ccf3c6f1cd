"""What the gateway looks at. One more thing to watch for is one more `Look` in this list."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count

from gateway.prefect_events import EVENTS_EVENT, QUEUE_EVENT, SINGLE_MAILS_EVENT
from gateway.watch import Found, Look
from mailout.base.ids import welcome_id
from mailout.base.settings import Settings
from mailout.insight.history.history_rows import keep_written_pages
from mailout.insight.metrics.scrape import rate_of
from mailout.insight.page_status import report_rows
from mailout.insight.page_status.port import PageReporter
from mailout.kinds.mailouts.requests import EVENT_SECONDS, ready_pages
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.protocol import Timing
from mailout.outbox.delivery.single_mails import SingleMailsWaiting
from mailout.outbox.feedback import feedback_rows, ingest
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import Status
from mailout.outbox.queue.unattended import slow_or_tested, unattended
from mailout.readers import sign_up_rows
from mailout.readers.port import WELCOME_SECONDS
from mailout.store import Store

STORE_SECONDS = 5.0
NOTION_SECONDS = 60.0
DRAFTS_SECONDS = 120.0
SLOW_LOOK_SECONDS = 60.0
UNAPPLIED_SECONDS = 15.0
"""Prefect hears of an event that came by POST at once, and its flow takes a few seconds to start."""
SPEED_SECONDS = 120.0
SINGLE_MAILS_SECONDS = 2.0
SINGLE_MAIL_WAIT_SECONDS = 5.0
"""Seconds that a single mail may wait with nobody sending."""
FLOW_START_SECONDS = 20.0
"""What a run may take to start, before another one is asked for."""


def looks(
    settings: Settings, store: Store, pages: PageReporter | None, queue: ingest.EventQueue | None
) -> Iterator[Look]:
    """`pages`: Notion's, `queue`: SQS's, where they are set up."""
    yield Look("the queue", QUEUE_EVENT, STORE_SECONDS, lambda: _queue(settings, store))
    yield Look("slow mailouts", QUEUE_EVENT, SLOW_LOOK_SECONDS, lambda: _slow(settings, store))
    singles = _SingleMails(store, rehearsal=settings.rehearses)
    yield Look("single mails", SINGLE_MAILS_EVENT, SINGLE_MAILS_SECONDS, singles.find)
    yield Look("welcome letters", QUEUE_EVENT, STORE_SECONDS, lambda: _welcomes(settings, store))
    yield Look("events that wait", EVENTS_EVENT, STORE_SECONDS, lambda: _inbox(store))
    if pages is not None:
        yield Look("pages to update", QUEUE_EVENT, NOTION_SECONDS, lambda: _outdated_pages(store))
    if pages is not None and pages.finds_ready:
        yield Look("Ready pages", QUEUE_EVENT, NOTION_SECONDS, lambda: _ready(store, pages))
        yield Look("drafts", QUEUE_EVENT, DRAFTS_SECONDS, lambda: _drafts(store, pages))
    if queue is not None:
        yield Look("SQS", EVENTS_EVENT, 0.0, partial(_sqs, settings, store, queue, count()))


def _queue(settings: Settings, store: Store) -> Found:
    lease = Timing.of(settings.lock_seconds).lease
    return unattended(store, lease=lease, rehearses=settings.rehearses, unanswered_for=EVENT_SECONDS)


def _welcomes(settings: Settings, store: Store) -> Found:
    """Who joined a list and has no letter in the outbox yet."""
    rehearsal, since = settings.rehearses, store.now() - WELCOME_SECONDS
    owed = sign_up_rows.owed_welcomes(store, since, rehearsal=rehearsal)
    return {welcome_id(one.list_key, one.email, rehearsal=rehearsal): 0.0 for one in owed}


def _slow(settings: Settings, store: Store) -> Found:
    now, rehearses = store.now(), settings.rehearses
    speed = rate_of(outbox_rows.begun_since(store, now - SPEED_SECONDS, rehearsal=rehearses), now)
    rate = settings.send_rate(rehearses=rehearses)
    return slow_or_tested(store, rehearses=rehearses, speed=speed, rate=rate)


def _inbox(store: Store) -> Found:
    """The oldest stands for all: once it is applied, the next one is another key."""
    return {f"event {one.id}": UNAPPLIED_SECONDS for one in feedback_rows.waiting_events(store, 1)}


def _outdated_pages(store: Store) -> Found:
    """Pages whose mailout is over, and which do not show it yet."""
    over = (Status.COMPLETED, Status.CANCELLED)
    return {
        f"page of {id}": NOTION_SECONDS
        for id in report_rows.due_reports(store)
        if store.mailout(id).status in over
    }


def _ready(store: Store, pages: PageReporter) -> Found:
    if queue_rows.all_paused(store):
        return {}
    return {f"page {ref}": 0.0 for ref in ready_pages(store, pages, store.now())}


def _drafts(store: Store, pages: PageReporter) -> Found:
    """For the dashboard alone: nobody is woken for a draft."""
    keep_written_pages(store, pages.written())
    return {}


def needs_a_sender(waiting: SingleMailsWaiting) -> bool:
    """Nobody sends, and a mail has waited too long; or one may come at any moment."""
    if waiting.is_served:
        return False
    waited = 0.0 if waiting.due_since is None else waiting.now - waiting.due_since
    return waiting.has_tokens or waited > SINGLE_MAIL_WAIT_SECONDS


class _SingleMails:
    """No schedule sends them: a run is asked for every `FLOW_START_SECONDS` until one sends. Each time is
    another key, else the watch would emit it ever more rarely."""

    def __init__(self, store: Store, *, rehearsal: bool) -> None:
        self._store = store
        self._rehearsal = rehearsal
        self._asked_at = 0.0

    def find(self) -> Found:
        waiting = self._store.single_mails_waiting(rehearsal=self._rehearsal)
        if not needs_a_sender(waiting):
            return {}
        if not 0 <= waiting.now - self._asked_at < FLOW_START_SECONDS:
            self._asked_at = waiting.now
        return {f"a sender, asked for at {self._asked_at}": 0.0}


def _sqs(settings: Settings, store: Store, queue: ingest.EventQueue, rounds: Iterator[int]) -> Found:
    """Takes what the queue holds into the inbox; what was taken is something to apply."""
    taken = ingest.poll(store, queue, settings.sns_topic_arns)
    return {f"taken {next(rounds)}": 0.0} if taken else {}
