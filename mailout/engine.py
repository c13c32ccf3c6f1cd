"""The engine: the steps of one mailout's story, over parts that `wiring` has chosen.

`flows/send_mailout.py` tells the same story under Prefect, a task for each step; `deliver` tells it without.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from mailout import ids
from mailout.audience.test_emails import parse_test_emails
from mailout.content.checks import check_content
from mailout.content.document import Document
from mailout.content.footer import Footer
from mailout.content.layout import render
from mailout.content.manuscript import Manuscript
from mailout.content.media import MediaStore, keep_media
from mailout.content.model import Content
from mailout.content.tokens import Tokens
from mailout.delivery.compose import Composer
from mailout.delivery.options import Ended, Observer, RunReport, SenderOptions
from mailout.delivery.patience import patiently
from mailout.delivery.protocol import Bucket, Claimed, Ledger, Result, RetryPlan, Timing
from mailout.delivery.sender import Sender
from mailout.errors import Abort, AbortCode, MailoutError, NotFound, SettingsError, UsageError
from mailout.ports import Allowance, Clock, ErrorRecord, Journals, PageReporter, Recipient, Store, Transport
from mailout.queue.judge import Judge, defer
from mailout.queue.limits import Limits, buckets, window_closes
from mailout.queue.model import Kind, Mailout, NewMailout, Status
from mailout.queue.outlook import Outlook
from mailout.reporting.files import csv_path, html_path
from mailout.reporting.html import write_html
from mailout.reporting.page_reports import PageReports
from mailout.reporting.redact import redact
from mailout.reporting.rows import CsvPart, write_csv
from mailout.reporting.summary import Summary, summarise
from mailout.reporting.words import LEFT_OUT
from mailout.settings import Settings

log = logging.getLogger("mailout.engine")

FREEZE_CHUNK = 20_000
ASK_EVERY = 180.0
STRETCH_SECONDS = 60.0
"""Between stretches the provider's quota is asked again."""


class Source(Protocol):
    """Where manuscripts are."""

    def load(self, ref: str) -> Manuscript: ...


@dataclass(frozen=True, slots=True)
class Reports:
    """What a mailout leaves behind for people."""

    summary: Summary
    csv: Path
    html: Path


class Engine:
    """One mailout's story: take up, freeze, send, conclude, report."""

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
        self.outlook = Outlook(store, limits, rate=settings.send_rate_per_sec, scope=transport.scope)
        self._judge = Judge(
            store,
            limits,
            max_bounce_rate=settings.max_bounce_rate,
            max_complaint_rate=settings.max_complaint_rate,
        )
        self._notes: dict[str, str] = {}  # of each mailout, what its summary should say besides
        self._sender: Sender | None = None
        self._allowance: Allowance | None = None
        self._asked_at: float | None = None

    # ── take up ──

    def take_up(self, ref: str, test: bool | None = None) -> Mailout:
        """Read the manuscript, refuse what must not be sent, and write the mailout into the queue.

        Whatever would stop it later stops it here, before the queue knows of it: nothing is half-done.
        """
        manuscript = self.manuscript(ref)
        is_test = manuscript.is_test if test is None else test
        with self._aborts_written_down(manuscript):
            known = None if is_test else self._known(manuscript)
            return known or self._write_down(manuscript, is_test)

    def look_over(self, ref: str, test: bool | None = None) -> str:
        """The id it would be taken up under, or the error that would stop it. Writes nothing to the queue."""
        manuscript = self.manuscript(ref)
        is_test = manuscript.is_test if test is None else test
        with self._aborts_written_down(manuscript):
            known = None if is_test else self._known(manuscript)
            if known is None:
                self._check_ready(is_test)
                self.render(manuscript)
        return self._id(manuscript, is_test)

    @contextmanager
    def _aborts_written_down(self, manuscript: Manuscript) -> Iterator[None]:
        try:
            yield
        except Abort as abort:
            error = ErrorRecord(abort.code, abort.message, stage="content", mailout=manuscript.ref)
            self.store.record_errors([error])
            if manuscript.kind is Kind.NOTION:
                self.pages.refuse(manuscript.ref, already_sent=abort.code is AbortCode.MAILOUT_ALREADY_SENT)
            else:
                self.pages.tell_errors()
            raise

    def _known(self, manuscript: Manuscript) -> Mailout | None:
        """A real mailout is one mailout, however often it is asked for; its content is the first one."""
        try:
            mailout = self.store.mailout(ids.mailout_id(manuscript.ref))
        except NotFound:
            if manuscript.already_sent:
                raise already_sent(manuscript.document.subject) from None
            return None
        if mailout.status is Status.COMPLETED:
            raise already_sent(mailout.subject)
        if mailout.status is Status.CANCELLED:
            raise UsageError(
                f"This mailout was cancelled ({mailout.id}).",
                remedy="To send it all the same, give the page or file another id.",
            )
        if mailout.content_hash is None and manuscript.already_sent:
            raise already_sent(manuscript.document.subject)
        return mailout if mailout.content_hash else None

    def _write_down(self, manuscript: Manuscript, is_test: bool) -> Mailout:
        self._check_ready(is_test)
        document, content = self.render(manuscript)
        mailout = self.store.enqueue(
            NewMailout(
                id=self._id(manuscript, is_test),
                kind=manuscript.kind,
                ref=manuscript.ref,
                subject=content.subject,
                list_key=manuscript.list_key,
                from_name=manuscript.from_name,
                is_test=is_test,
                scheduled_at=None if is_test else self._time_to_take_it_back(),
            )
        )
        self.store.put_content(content)
        problems = [*document.problems, *check_content(content)]
        self.store.record_errors(
            [ErrorRecord(p.code, p.message, stage="content", mailout=mailout.id) for p in problems]
        )
        return self.store.set_content(mailout.id, content.hash, content.subject)

    def _time_to_take_it_back(self) -> float | None:
        delay = self.settings.send_delay
        return self.store.now() + delay if delay else None

    def _check_ready(self, is_test: bool) -> None:
        """A sender and somebody to send to: a real mailout to nobody would be done, and never be repeated."""
        self._from_email()
        if is_test:
            self._test_recipients()
            return
        self.store.normalise_addresses()
        if not self.store.subscriber_counts()["active"]:
            raise UsageError(
                "There is nobody to send it to: the store has no active subscriber.",
                remedy="Import some first: mailout subscribers import FILE.csv",
            )

    def _id(self, manuscript: Manuscript, is_test: bool) -> str:
        if not is_test:
            return ids.mailout_id(manuscript.ref)
        return ids.test_run_id(manuscript.ref, self.store.next_test_run(manuscript.ref))

    def manuscript(self, ref: str) -> Manuscript:
        return self._source_of(ref).load(ref)

    def render(self, manuscript: Manuscript) -> tuple[Document, Content]:
        """The manuscript's pictures kept, its layout and footer around it."""
        footer = self.footer()
        document = keep_media(manuscript.document, manuscript.read_media, self._media)
        return document, render(document, footer)

    # ── freeze ──

    def freeze(self, id: str) -> Mailout:
        """Write the audience into the outbox, once. A crash in between goes on where it was."""
        mailout = self.store.mailout(id)
        if mailout.frozen_at is None and mailout.is_test:
            for written, reason in parse_test_emails(self.settings.test_emails).rejected:
                log.warning("TEST_EMAILS: %s is left out (%s)", redact(written), reason)
            self.store.freeze_recipients(id, self._test_recipients())
        elif mailout.frozen_at is None:
            self.store.normalise_addresses()  # whoever was added since the queue took it up, too
            while self.store.freeze_subscribers(id, chunk=FREEZE_CHUNK) is not None:
                log.info("%d recipients are in the outbox", self.store.mailout(id).ledger.recipients)
            for problem, n in self.store.left_out().items():
                log.warning("active subscribers who get no mail: %d (%s)", n, LEFT_OUT[problem])
        return self.store.mailout(id)

    def _test_recipients(self) -> Sequence[Recipient]:
        parsed = parse_test_emails(self.settings.test_emails)
        if not parsed.addresses:
            raise Abort(
                AbortCode.TEST_EMAILS_EMPTY,
                "a test run goes to TEST_EMAILS, and there is no valid address in it.",
                remedy="Set TEST_EMAILS to one or more addresses, separated by commas.",
            )
        return [Recipient(address) for address in parsed.addresses]

    # ── send ──

    def start(self, id: str) -> Mailout:
        """Take it up if it is due and mail may leave now; else it waits, and says why."""
        mailout = self.store.start(id, self.worker)
        self.pages.tell(id)
        if mailout.status is Status.PROCESSING:
            wait = self._judge.why_not_start(mailout)
            if wait is not None:
                return defer(self.store, id, wait)
        return mailout

    def send_for(self, id: str, seconds: float | None = None, observer: Observer | None = None) -> RunReport:
        """Send for so long (None: to the end). What was sent stands in the CSV as it goes."""
        mailout = patiently(lambda: self.store.mailout(id), self.clock)
        allowance = patiently(self._ask_provider, self.clock)
        if allowance is not None and allowance.refused is not None:
            return RunReport(Ended.REFUSED, mailout.ledger, outcome=allowance.refused)
        part = CsvPart(self.reports, self.worker, self.clock)
        watchers = [part] if observer is None else [part, observer]
        self._sender = Sender(
            self.store,
            self._transport,
            self._composer(mailout),
            self._journals,
            self.clock,
            patiently(lambda: self._options(allowance), self.clock),
            _All(watchers),
        )
        try:
            report = self._sender.run(id, deadline=self._deadline(seconds))
        finally:
            self._sender = None
        self._warn_if_too_few_lanes(id, report)
        return report

    def _deadline(self, seconds: float | None) -> float | None:
        """On the monotonic clock: nothing is begun after the window has closed."""
        now = patiently(self.store.now, self.clock)
        left = min(seconds or math.inf, window_closes(self.limits, now) - now)
        return None if left == math.inf else self.clock.monotonic() + max(0.0, left)

    def _warn_if_too_few_lanes(self, id: str, report: RunReport) -> None:
        """Once for each mailout: its rate is out of reach, however long it sends."""
        lanes = self.settings.send_concurrency
        if report.lanes_needed > lanes and id not in self._notes:
            self._notes[id] = (
                f"SEND_CONCURRENCY={lanes} cannot reach the rate: the provider takes"
                f" {report.latency:.2f} s to answer, so {report.lanes_needed} calls at a time are needed."
            )
            log.warning(self._notes[id])

    def stop(self) -> bool:
        """Finish what is in hand and end; False: nothing is being sent. Safe in a signal handler."""
        sender = self._sender
        if sender is not None:
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
        )

    def refresh_quota(self) -> None:
        """Ask the provider, if it was not asked just now, so that limits go by what is true."""
        self._ask_provider()

    def _ask_provider(self) -> Allowance | None:
        """The provider's quota and rate, every few minutes. Without an answer the last one holds."""
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
                    self.store.set_quota(self._transport.scope, self._allowance.available, asked_at)
        return self._allowance

    def _options(self, allowance: Allowance | None) -> SenderOptions:
        settings = self.settings
        rates = [settings.send_rate_per_sec, (allowance.max_rate if allowance else None) or 0.0]
        self.outlook.rate = min((rate for rate in rates if rate), default=0.0)
        return SenderOptions(
            worker=self.worker,
            rate=self.outlook.rate,
            timing=Timing.of(settings.lock_seconds),
            concurrency=settings.send_concurrency,
            batch_size=settings.batch_size,
            retry=RetryPlan(settings.max_attempts, settings.retry_delays),
            pace_scope=self._transport.scope,
            circuit_failures=settings.circuit_failures,
            buckets=partial(self._buckets, self.store.first_day(self._transport.scope)),
        )

    def _buckets(self, first_day: str | None, now: float) -> Sequence[Bucket]:
        return buckets(self.limits, now, first_day)

    def footer(self) -> Footer:
        settings = self.settings
        secret = settings.unsubscribe_secret
        return Footer.required(
            org_name=settings.org_name,
            org_address=settings.org_address,
            unsubscribe_base_url=settings.unsubscribe_base_url,
            unsubscribe_secret=secret.get_secret_value() if secret else None,
        )

    def tokens(self) -> Tokens:
        secret = self.settings.unsubscribe_secret
        current = secret.get_secret_value() if secret else ""
        return Tokens([current, *(old.get_secret_value() for old in self.settings.unsubscribe_secrets_old)])

    def _from_email(self) -> str:
        if not self.settings.from_email:
            raise SettingsError(
                "FROM_EMAIL: is missing.", remedy="Set it to the address that letters come from."
            )
        return self.settings.from_email

    # ── conclude and report ──

    def conclude(self, id: str, report: RunReport) -> Mailout:
        """What the end of a run means for the mailout: complete, deferred, to be continued, or let go."""
        return patiently(lambda: self._conclude(id, report), self.clock)

    def _conclude(self, id: str, report: RunReport) -> Mailout:
        if report.ended is Ended.DONE:
            return self.store.complete(id)
        mailout = self.store.mailout(id)
        wait = self._judge.why_it_ended(mailout, report)
        if wait is not None:
            return defer(self.store, id, wait)
        return mailout if report.ended is Ended.DEADLINE else self.store.release(id)

    def report(self, id: str) -> Reports:
        """The CSV and the report page, made anew from the store; its Notion page is told."""
        summary = summarise(
            self.store,
            id,
            transport=self._transport.name,
            forecast=self.outlook.forecast(id),
            note=self._notes.get(id),
        )
        csv, html = csv_path(self.reports, id), html_path(self.reports, id)
        write_csv(self.store, id, csv)
        write_html(summary, html, self.limits.timezone, csv=csv)
        self.pages.tell(id)
        return Reports(summary, csv, html)

    # ── the whole story ──

    def deliver(self, id: str, observer: Observer | None = None) -> Mailout:
        """Freeze, send, conclude, report: until it is complete, or waits, or was stopped."""
        self.freeze(id)
        mailout = self.start(id)
        going_on = mailout.status is Status.PROCESSING
        while going_on:
            report = self.send_for(id, STRETCH_SECONDS, observer)
            mailout = self.conclude(id, report)
            going_on = report.ended is Ended.DEADLINE and mailout.status is Status.PROCESSING
        self.report(id)
        return mailout


def already_sent(subject: str) -> Abort:
    return Abort(
        AbortCode.MAILOUT_ALREADY_SENT,
        f"“{subject}” has been sent; a real mailout goes out once.",
        remedy="To send to those that failed: `mailout queue retry`. For a trial: `--test`.",
    )


@dataclass(frozen=True, slots=True)
class _All:
    """Several observers as one."""

    observers: Sequence[Observer]

    def recorded(self, results: Sequence[tuple[Claimed, Result]], ledger: Ledger | None) -> None:
        for observer in self.observers:
            observer.recorded(results, ledger)
