"""The engine: the steps of one mailout, over parts that `wiring` has chosen.

`flows/send_mailout.py` runs the same steps under Prefect, a task for each; `deliver` runs them without.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from mailout.alerts.sender import AlertSender
from mailout.audience.addresses import LEFT_OUT
from mailout.clock import Clock
from mailout.content.port import MediaStore, Source
from mailout.content.tokens import Tokens
from mailout.delivery.compose import Composer
from mailout.delivery.notification_mail import NotificationComposer
from mailout.delivery.options import CallTime, Ended, Observer, Observers, RunReport, SenderOptions
from mailout.delivery.outcome_log import OutcomeLog
from mailout.delivery.port import REHEARSING, Allowance, Journals, Transport
from mailout.delivery.protocol import RetryPlan, Timing
from mailout.delivery.recovery import reap
from mailout.delivery.sender import Sender
from mailout.delivery.store_retry import wait_for_store
from mailout.delivery.throttling import Throttling
from mailout.errors import HomeUnwritable, MailoutError, StoreError, UsageError
from mailout.intake.mailouts import MailoutIntake
from mailout.page_status.port import PageReporter
from mailout.page_status.updates import PageReports
from mailout.queue.judge import Judge, defer
from mailout.queue.limits import Limits, buckets, window_closes
from mailout.queue.mailout import Mailout, Status
from mailout.queue.snapshot import QueueForecast
from mailout.reporting.files import csv_path, html_path, replace_address
from mailout.reporting.html import write_html
from mailout.reporting.rows import CsvPart, write_csv
from mailout.reporting.summary import Summary, summarise
from mailout.settings import Settings
from mailout.store import Store

log = logging.getLogger("mailout.engine")

FREEZE_CHUNK = 20_000
ASK_EVERY = 180.0
ENOUGH_TO_TELL = 60.0
"""Seconds of sending, before anything is said about how fast it can be."""
TIME_SLICE_SECONDS = 60.0
"""Between time slices the provider's quota is asked again."""


@dataclass(frozen=True, slots=True)
class Reports:
    """What a mailout leaves behind for people."""

    summary: Summary
    csv: Path
    html: Path
    written: bool = True  # the files; False: whoever stopped the sending did not wait for them


class Engine(MailoutIntake):
    """One mailout, step by step: enqueue, freeze, send, conclude, report."""

    store: Store

    def __init__(
        self,
        *,
        settings: Settings,
        store: Store,
        transport: Transport,
        journals: Journals,
        media: MediaStore,
        source_of: Callable[[str], Source],
        clock: Clock,
        limits: Limits,
        worker: str,
        reporter: PageReporter | None = None,
    ) -> None:
        self.settings = settings
        self.store = store
        self.clock = clock
        self.limits = limits
        self.worker = worker
        self.reports = settings.mailout_home / "reports"
        self.pages = PageReports(store, reporter, clock, transport.name)
        self._transport = transport
        self._journals = journals
        self._media = media
        self._source_of = source_of
        self._validated = {}
        self._left_out = set()
        self.queue_forecast = QueueForecast(
            store,
            limits,
            rate=settings.send_rate_per_sec,
            scope=transport.scope,
            rehearses=transport.name == REHEARSING,
        )
        self._judge = Judge(
            store,
            limits,
            max_bounce_rate=settings.max_bounce_rate,
            max_complaint_rate=settings.max_complaint_rate,
            require_test=settings.require_test,
        )
        self._call_times: dict[str, CallTime] = {}
        self._notes: dict[str, str] = {}  # of each mailout, what its summary should say besides
        self._throttling = Throttling()
        self._in_haste = False  # somebody has asked to stop: what takes long at a million is left for later
        self._sender: Sender | None = None
        self._allowance: Allowance | None = None
        self._asked_at: float | None = None

    # ── freeze ──

    def freeze(self, id: str) -> Mailout:
        """Write the audience into the outbox, once. A crash in between goes on where it was."""
        mailout = self.store.mailout(id)
        if mailout.frozen_at is None and mailout.is_test:
            self.store.freeze_recipients(id, self._test_recipients())
        elif mailout.frozen_at is None:
            self.store.normalise_addresses()  # whoever was added since the queue took it up, too
            while self.store.freeze_subscribers(id, chunk=FREEZE_CHUNK) is not None:
                log.info("%d recipients are in the outbox", self.store.mailout(id).ledger.recipients)
            for problem, n in self.store.left_out().items():
                log.warning("active subscribers who get no mail: %d (%s)", n, LEFT_OUT[problem])
        return self.store.mailout(id)

    # ── send ──

    def start(self, id: str) -> Mailout:
        """Take it up if it is due and mail may leave now; else it waits, and says why."""
        waiting = self.store.mailout(id)
        require_same_transport(waiting, self.rehearses)
        if self.settings.require_test:
            self.render_again(waiting)
        mailout = self.store.start(id, self.worker)
        self.pages.tell(id)
        if mailout.status is Status.PROCESSING:
            wait = self._judge.why_not_start(mailout)
            if wait is not None:
                return defer(self.store, id, wait)
        return mailout

    def send_for(self, id: str, seconds: float | None = None, observer: Observer | None = None) -> RunReport:
        """Send for so long (None: to the end). What was sent stands in the CSV as it goes."""
        mailout = wait_for_store(lambda: self.store.mailout(id), self.clock)
        allowance = wait_for_store(self.ask_provider, self.clock)
        if allowance is not None and allowance.refused is not None:
            return RunReport(Ended.REFUSED, mailout.ledger, outcome=allowance.refused)
        part = CsvPart(self.reports, self.worker, self.clock)
        watchers: list[Observer] = [part, OutcomeLog(), *([observer] if observer else [])]
        self._sender = Sender(
            self.store,
            self._transport,
            self._composer(mailout),
            self._journals,
            self.clock,
            wait_for_store(lambda: self._options(allowance), self.clock),
            Observers(watchers),
            self._throttling,
        )
        try:
            report = self._sender.run(id, deadline=self._deadline(seconds))
        except HomeUnwritable:
            self._let_go(id)
            raise
        finally:
            self._sender = None
        self._call_times[id] = self._call_times.get(id, CallTime()) + report.call_time
        self._warn_if_concurrency_too_low(id)
        return report

    def send_notifications(self, seconds: float) -> RunReport:
        """Messages of a producer's queue that are due, for so long at most. Their hours are the producer's
        business; hour, day, quota and pace are shared with all other mail."""
        allowance = wait_for_store(self.ask_provider, self.clock)
        if allowance is not None and allowance.refused is not None:
            return RunReport(Ended.REFUSED, None, outcome=allowance.refused)
        options = wait_for_store(lambda: self._options(allowance), self.clock)
        self._sender = Sender(
            self.store,
            self._transport,
            NotificationComposer(
                self.store.content,
                from_email=self._from_email(),
                from_name=self.settings.from_name or "",
                reply_to=self.settings.reply_to,
            ),
            self._journals,
            self.clock,
            replace(options, until_idle=True),
            OutcomeLog(),
            self._throttling,
        )
        try:
            return self._sender.run(None, deadline=self.clock.monotonic() + seconds)
        finally:
            self._sender = None

    def _let_go(self, id: str) -> None:
        """The next look of the queue takes it up at once, instead of when its lease has run out."""
        try:
            self.store.release(id)
        except StoreError as error:
            log.info("%s is taken up again when its lease has run out: %s", id, error)

    def reap(self) -> int:
        """Give up senders that disappeared; what this machine's journals know of them is not lost."""
        return reap(self.store, self._journals, Timing.of(self.settings.lock_seconds).reap_grace)

    def _deadline(self, seconds: float | None) -> float | None:
        """On the monotonic clock: nothing is begun after the window has closed."""
        now = wait_for_store(self.store.now, self.clock)
        left = min(seconds or math.inf, window_closes(self.limits, now) - now)
        return None if left == math.inf else self.clock.monotonic() + max(0.0, left)

    def _warn_if_concurrency_too_low(self, id: str) -> None:
        """Once for each mailout: its rate is out of reach, however long it sends. A few calls do not tell."""
        concurrency, measured = self.settings.send_concurrency, self._call_times[id]
        needed = measured.concurrency_needed(self.queue_forecast.rate)
        if measured.seconds >= ENOUGH_TO_TELL and needed > concurrency and id not in self._notes:
            self._notes[id] = (
                f"SEND_CONCURRENCY={concurrency} cannot reach the rate: the provider takes"
                f" {measured.latency:.2f} s to answer, so {needed} calls at a time are needed."
            )
            log.warning(self._notes[id])

    def stop(self) -> bool:
        """Finish what is in hand and end; False: nothing is being sent. Safe in a signal handler."""
        sender = self._sender
        if sender is not None:
            self._in_haste = True
            sender.stop()
        return sender is not None

    def _composer(self, mailout: Mailout) -> Composer:
        return Composer(
            self.store.content,
            footer=self.footer(),
            tokens=self.tokens(),
            from_email=self._from_email(),
            from_name=mailout.from_name or self.settings.from_name or "",
            reply_to=self.settings.reply_to,
            list_key=mailout.list_key,
            is_test=mailout.is_test,
        )

    def ask_provider(self) -> Allowance | None:
        """Its quota and rate, every few minutes, so that limits go by what is true. Without an answer the
        last one holds."""
        now = self.clock.monotonic()
        if self._asked_at is None or now - self._asked_at >= ASK_EVERY:
            asked_at = self.store.now()  # before the question: what leaves meanwhile must not be lost
            try:
                self._allowance = self._transport.allowance()
            except MailoutError as error:
                log.warning("the provider does not tell its quota: %s", error)
            else:
                self._asked_at = now
                if self._allowance is not None:
                    left, most = self._allowance.available, self._allowance.most
                    self.store.set_quota(self._transport.scope, left, asked_at, most=most)
        return self._allowance

    def rate(self) -> float:
        """Messages a second that may leave, by our own setting and the provider's word; 0: no limit."""
        return self._rate(self.ask_provider())

    def _rate(self, allowance: Allowance | None) -> float:
        rates = [self.settings.send_rate_per_sec, (allowance.max_rate if allowance else None) or 0.0]
        self.queue_forecast.rate = min((rate for rate in rates if rate), default=0.0)
        return self.queue_forecast.rate

    def _options(self, allowance: Allowance | None) -> SenderOptions:
        settings, first_day = self.settings, self.store.first_day(self._transport.scope)
        return SenderOptions(
            worker=self.worker,
            rate=self._rate(allowance),
            timing=Timing.of(settings.lock_seconds),
            concurrency=settings.send_concurrency,
            batch_size=settings.batch_size,
            retry=RetryPlan(settings.max_attempts, settings.retry_delays),
            pace_scope=self._transport.scope,
            circuit_failures=settings.circuit_failures,
            buckets=lambda now: buckets(self.limits, now, first_day, rehearsal=self.rehearses),
        )

    def tokens(self) -> Tokens:
        return Tokens(self.settings.unsubscribe_keys)

    # ── conclude and report ──

    def conclude(self, id: str, report: RunReport) -> Mailout:
        """What the end of a run means for the mailout: complete, deferred, to be continued, or let go."""
        return wait_for_store(lambda: self._conclude(id, report), self.clock)

    def _conclude(self, id: str, report: RunReport) -> Mailout:
        if report.ended is Ended.DONE:
            return self.store.complete(id)
        mailout = self.store.mailout(id)
        wait = self._judge.why_it_ended(mailout, report)
        if wait is not None:
            return defer(self.store, id, wait)
        return mailout if report.ended is Ended.DEADLINE else self.store.release(id)

    def report(self, id: str) -> Reports:
        """The CSV and the report page, made again from the store; its Notion page is told."""
        if self._in_haste and not (mailout := self.store.mailout(id)).ledger.settled:
            self.pages.tell_later(mailout)
            summary = Summary(mailout, self.store.now(), transport=self._transport.name)
            return Reports(summary, csv_path(self.reports, id), html_path(self.reports, id), written=False)
        summary = summarise(
            self.store,
            id,
            transport=self._transport.name,
            forecast=self.queue_forecast.forecast(id),
            note=self._notes.get(id),
        )
        reports = Reports(summary, csv_path(self.reports, id), html_path(self.reports, id))
        if summary.mailout.archived_at is None:  # else they would be made of nothing
            try:
                self._write(reports)
            except HomeUnwritable as error:
                log.warning("The report was not written, the mailout is as it should be. %s", error)
        self.pages.tell(id)
        return reports

    def _write(self, reports: Reports) -> None:
        write_csv(self.store, reports.summary.mailout.id, reports.csv)
        write_html(reports.summary, reports.html, self.limits.timezone, csv=reports.csv)

    def keep_report(self, id: str) -> None:
        """Its files, if this machine has none: once it is archived they cannot be made any more."""
        csv, html = csv_path(self.reports, id), html_path(self.reports, id)
        if not csv.exists() or not html.exists():
            self._write(Reports(summarise(self.store, id), csv, html))

    def forget_in_reports(self, id: str, address: str, instead: str) -> None:
        """In the files of an archived mailout, which cannot be made again."""
        for path in (csv_path(self.reports, id), html_path(self.reports, id)):
            if path.exists():
                replace_address(path, address, instead)

    @property
    def alert_sender(self) -> AlertSender:
        """Tells a person what needs them."""
        return AlertSender(self.store, self._transport, self.settings, self.limits.timezone)

    # ── all steps ──

    def deliver(self, id: str) -> None:
        """Freeze, send, conclude, report: until it is complete, or waits, or was stopped."""
        self.freeze(id)
        if self.start(id).status is Status.PROCESSING:
            while self.send_time_slice(id):
                continue
        self.report(id)

    def send_time_slice(self, id: str) -> bool:
        """Send for a while; True while there is more to do."""
        report = self.send_for(id, TIME_SLICE_SECONDS)
        return goes_on(report, self.conclude(id, report))


def require_same_transport(mailout: Mailout, rehearses: bool) -> None:
    """A rehearsal must not reach people, and a folder must not use up what they are to get."""
    if mailout.is_rehearsal and not rehearses:
        raise UsageError(
            f"“{mailout.subject}” is a rehearsal: it is written to a folder and goes to nobody.",
            remedy="To send it to people: mailout send REF. To end the rehearsal: mailout queue cancel ID",
        )
    if rehearses and not mailout.is_rehearsal:
        raise UsageError(
            f"“{mailout.subject}” goes to people, and MAILOUT_TRANSPORT=folder sends nothing to anybody.",
            remedy="Set MAILOUT_TRANSPORT=ses to go on with it.",
        )


def goes_on(report: RunReport, mailout: Mailout) -> bool:
    """Its time was up, and nothing else keeps it from being sent."""
    return report.ended is Ended.DEADLINE and mailout.status is Status.PROCESSING
