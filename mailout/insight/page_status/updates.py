"""Keeps the pages of mailouts, and the errors database, up to date.

What is to be written is noted in the store before it is tried: a page that cannot be written now is written
later, and a finished mailout never fails because Notion is away.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo

from mailout.base import ids
from mailout.base.clock import Clock
from mailout.base.error_log import ERROR_TABLE, ErrorRecord
from mailout.base.errors import (
    MailoutError,
    SourceError,
    SourceNotFound,
    SourceRefused,
    SourceUnavailable,
    StoreError,
)
from mailout.base.select import every
from mailout.insight.history import notion_troubles
from mailout.insight.page_status import report_rows
from mailout.insight.page_status.failures import grouped, new_failures
from mailout.insight.page_status.port import PageReporter, PageStore
from mailout.insight.page_status.state import PageState, PageStatus, awaits_test, page_state
from mailout.insight.page_status.writer_notes import all_is_paused, planned, refusal, unreadable
from mailout.letters.content.document import Problem, problem_line
from mailout.letters.content.port import Kind
from mailout.letters.content.refs import page_id_of
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import Mailout, Status
from mailout.outbox.queue.port import mailout_or_none

log = logging.getLogger("mailout.reporting")

DOWN_SECONDS = 60.0
"""After a failure nothing is tried for so long: whoever waits for us need not wait for Notion as well."""
ERRORS_AT_ONCE = 100
REPORTED_ERRORS_SECONDS = 7 * 86_400.0
"""Errors older than a week are not reported any more: an errors database may be set up late."""
RATES_CHANGE_SECONDS = 30 * 86_400.0
UNCHANGED = "Rehearsed before, and not changed since: nothing was written."


@dataclass(eq=False, repr=False)
class PageReports:
    """Without a reporter it does nothing."""

    store: PageStore
    reporter: PageReporter | None
    clock: Clock
    provider: str
    dashboard: str | None = None  # its address, if there is one that the world reaches
    zone: tzinfo = UTC  # its people's

    def __post_init__(self) -> None:
        self._pages = _Line(self.clock, "a page", self._note_trouble)
        self._errors = _Line(self.clock, "the errors database")

    @property
    def away(self) -> bool:
        """Whether telling a page failed just now: then nothing is tried for a while."""
        return self._pages.is_down

    def update(self, id: str) -> bool:
        """Show on its page how the mailout stands, or later. False: the page could not be written now."""
        if self.reporter is None:
            return True
        mailout = self.store.mailout(id)
        if mailout.kind is not Kind.NOTION:  # it has no page, but it may have errors
            self._report_errors_of(mailout)
            return True
        self.store.ask_report(id)
        asked = report_rows.due_reports(self.store).get(id, 0)
        # Read after it was asked for: what is written is at least as new as what is ticked off.
        return self._tell(self.store.mailout(id), asked, again=asked > 1)

    def update_later(self, mailout: Mailout) -> None:
        """Whoever updates what is due next updates this, too."""
        if self.reporter is not None and mailout.kind is Kind.NOTION:
            self.store.ask_report(mailout.id)

    def update_due(self) -> None:
        """Everything that could not be written before, and how those stand that are being sent."""
        if self.reporter is None:
            return
        due = report_rows.due_reports(self.store)
        for id, asked in due.items():
            self._tell(self.store.mailout(id), asked, again=True)
        if not due:
            self._note_trouble(None)  # what failed was for the moment: nothing waits to be written
        self.report_errors()

    def refresh(self) -> None:
        """Counts and rates of the last weeks' mailouts: deliveries and bounces come in late."""
        if self.reporter is not None:
            since = self.store.now() - RATES_CHANGE_SECONDS
            shown = {
                "kind": Kind.NOTION,
                "status": Status.COMPLETED,
                "mode": "real",
                "completed_at >=": since,
            }
            for mailout in every(self.store, queue_rows.MAILOUTS, shown):
                if mailout.metrics:
                    self.store.ask_report(mailout.id)
        self.update_due()

    def refuse(self, ref: str, why: Exception, *, rehearsed: bool = False) -> None:
        """A page that cannot be sent asks no more: a person corrects it and asks again.

        It gets no `sent_at`: nothing was sent. One that was sent before goes back to how that ended, one that
        was only rehearsed to being a draft.
        """
        self.report_errors()
        real = mailout_or_none(self.store, ids.mailout_id(ref))
        note = refusal(why, self._link("problems"))
        state = replace(self._state(real) if real else PageState(status=PageStatus.FAILED), note=note)
        if rehearsed:
            state = PageState(status=PageStatus.DRAFT, is_rehearsal=True, note=UNCHANGED)
        self._show(ref, state, if_ready=True)

    def show_findings(self, ref: str, problems: Sequence[Problem]) -> bool:
        """On the page, for its author. Not repeated later: the next run looks again. False: not written."""
        lines = [problem_line(problem) for problem in problems]
        return self._write_page(ref, lambda reporter: reporter.show_findings(ref, lines))

    def show_planned(self, ref: str, at: float | None) -> None:
        """Its page asks to be sent at once, and somebody has chosen a time; None: and has taken it back."""
        why = None if at is None else planned(at, self.zone, self._link(f"draft?ref={ref}"))
        self._write_page(ref, lambda reporter: reporter.show_waiting(ref, why))

    def show_paused(self, ref: str, paused: bool) -> bool:
        """Its page asks to be sent, and nothing is; or no longer. False: it has to be tried again."""
        why = all_is_paused(self._link(f"draft?ref={ref}")) if paused else None
        return self._write_page(ref, lambda reporter: reporter.show_waiting(ref, why))

    def show_unreadable(self, ref: str, error: MailoutError | None) -> None:
        """Its page asks to be sent, and has not been readable for a while; None: it asks no more."""
        why = None if error is None else unreadable(error)
        self._write_page(ref, lambda reporter: reporter.show_waiting(ref, why))

    def report_errors(self) -> None:
        """New errors, each once. One whose answer was lost may be reported again: better twice than never."""
        reporter = self.reporter
        if reporter is None or not reporter.keeps_errors:
            return
        since = self.store.now() - REPORTED_ERRORS_SECONDS
        while errors := report_rows.unreported_errors(self.store, since, ERRORS_AT_ONCE):
            for error, numbers in grouped(errors):
                if not self._record(reporter, error):
                    return
                self.store.errors_reported(numbers)

    def _tell(self, mailout: Mailout, asked: int, *, again: bool) -> bool:
        """Due until its end was written: a process that dies in between leaves it to the next one."""
        # Where the real mailout has begun, the page speaks of that one, whatever is tried out besides.
        tried_out = mailout.is_test or mailout.is_rehearsal
        real = mailout_or_none(self.store, ids.mailout_id(mailout.ref)) if tried_out else None
        awaits = awaits_test(mailout)
        state = replace(self._state(real or mailout), awaits_test=awaits, shown_before=again and real is None)
        written = self._show(mailout.ref, state)
        if written and mailout.status in (Status.COMPLETED, Status.CANCELLED):
            self.store.report_made(mailout.id, asked)
        self._report_errors_of(mailout)
        return written

    def _state(self, mailout: Mailout) -> PageState:
        paused = queue_rows.all_paused(self.store)
        return page_state(mailout, self._link(f"letters/{mailout.id}"), self.zone, all_paused=paused)

    def _link(self, page: str) -> str | None:
        return f"{self.dashboard.rstrip('/')}/{page}" if self.dashboard else None

    def _show(self, ref: str, state: PageState, *, if_ready: bool = False) -> bool:
        return self._write_page(ref, lambda reporter: reporter.show(ref, state, if_ready=if_ready))

    def _note_trouble(self, error: MailoutError | None) -> None:
        notion_troubles.keep(self.store, notion_troubles.WRITING, {"": error} if error else {})

    def _write_page(self, ref: str, write: Callable[[PageReporter], None]) -> bool:
        """False: it has to be tried again."""
        reporter = self.reporter
        if reporter is None:
            return False
        try:
            return self._pages.attempt(lambda: write(reporter))
        except SourceNotFound as error:
            log.warning("There is no page to update any more: %s", error.message)
            return True
        except SourceError as refused:
            log.warning("Notion: the page %s is not updated, because that is refused: %s", ref, refused)
            return _asks_no_more(reporter, ref)

    def _report_errors_of(self, mailout: Mailout) -> None:
        if self.reporter is not None and self.reporter.keeps_errors and mailout.status != Status.PROCESSING:
            failures = new_failures(self.store, mailout, self.provider)
            if failures:
                self.store.put(ERROR_TABLE, failures)
        self.report_errors()

    def _record(self, reporter: PageReporter, error: ErrorRecord) -> bool:
        """With its mailout in words; it belongs to the mailout's page."""
        page = page_id_of(error.mailout or "")  # of one that stopped before it was a mailout
        subject = None
        if error.mailout and (mailout := mailout_or_none(self.store, error.mailout)):
            page = mailout.ref if mailout.kind is Kind.NOTION else None
            subject = mailout.subject
            error = replace(error, mailout=f"{mailout.subject} ({mailout.id})")
        try:
            return self._errors.attempt(lambda: _record_somehow(reporter, error, page, subject))
        except SourceNotFound as missing:
            log.warning("The errors database cannot be found: %s", missing)
            return False


def _asks_no_more(reporter: PageReporter, ref: str) -> bool:
    """What Notion refuses is given up, except on a page that asks to be sent: it would ask every minute."""
    try:
        return reporter.ready_at(ref) is None
    except SourceError:
        return False


def _record_somehow(
    reporter: PageReporter, error: ErrorRecord, page: str | None, subject: str | None
) -> None:
    """A record that Notion will never take must not hold back those behind it."""
    for where in dict.fromkeys((page, None)):  # the page may be of a database that cannot be pointed to
        try:
            reporter.record(error, where, subject)
        except (SourceUnavailable, SourceRefused, SourceNotFound):
            raise
        except SourceError as refused:
            said = refused.message
        else:
            return
    log.warning("Notion: an error is in the store alone, because its record is refused: %s", said)


class _Line:
    """The way to one place in Notion. After a failure it is down for a while."""

    def __init__(
        self, clock: Clock, place: str, told: Callable[[MailoutError | None], None] = lambda _: None
    ) -> None:
        """`told`: why it is down, or that it is not."""
        self._clock = clock
        self._place = place
        self._told = told
        self._up_at = clock.monotonic()

    @property
    def is_down(self) -> bool:
        return self._clock.monotonic() < self._up_at

    def attempt(self, write: Callable[[], None]) -> bool:
        """False: not written. The store knows that it is due, so this is no error of the mailout's."""
        if self.is_down:
            return False
        try:
            write()
        except StoreError:
            raise
        except MailoutError as error:
            if isinstance(error, SourceNotFound) or type(error) is SourceError:
                self._told(None)  # about this one page: no reason for the others to wait
                raise
            log.warning("Notion: %s could not be updated and will be updated later: %s", self._place, error)
            self._up_at = self._clock.monotonic() + DOWN_SECONDS
            self._told(error)
            return False
        self._told(None)
        return True
