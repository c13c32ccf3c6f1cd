"""Sending one mailout, step by step: freeze, start, send for a while, conclude.

`flows/send_mailout.py` runs these steps under Prefect, a task for each; `Engine.deliver` runs them without.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from mailout.app.single_mails_hold import SingleMailsHold
from mailout.base.addresses import LEFT_OUT
from mailout.base.clock import Clock
from mailout.base.errors import (
    SourceUnavailable,
    StoreError,
    StoreRolledBack,
    StoreUnavailable,
    UsageError,
)
from mailout.base.settings import Settings
from mailout.insight.page_status.updates import PageReports
from mailout.insight.reporting.rows import CsvPart
from mailout.kinds.articles.articles import ArticleIntake
from mailout.kinds.mailouts.readiness import EmailsForTests
from mailout.letters.audience import list_rows, subscriber_rows
from mailout.letters.content import content_rows
from mailout.letters.content.from_settings import footer_of, from_email_of, tokens_of, view_url
from mailout.letters.content.port import Kind
from mailout.letters.content.variables import attributes_of, variables_of
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.compose import Composer, SingleComposer
from mailout.outbox.delivery.concurrency import ConcurrencyCheck
from mailout.outbox.delivery.options import Ended, Observer, RunReport, SenderOptions
from mailout.outbox.delivery.outcome_log import OutcomeLog
from mailout.outbox.delivery.port import REHEARSING, Journals, Mail, Transport
from mailout.outbox.delivery.protocol import Claimed, Outcome, RetryPlan, Timing
from mailout.outbox.delivery.provider_limits import ProviderLimits
from mailout.outbox.delivery.recovery import reap
from mailout.outbox.delivery.sender import Sender
from mailout.outbox.delivery.store_retry import wait_for_store
from mailout.outbox.delivery.throttling import Throttling
from mailout.outbox.feedback.ingest import ingest
from mailout.outbox.feedback.port import Applied
from mailout.outbox.queue import segment_names
from mailout.outbox.queue.deferrals import Deferrals, defer
from mailout.outbox.queue.limits import Defer, Limits, after_errors, buckets, window_closes
from mailout.outbox.queue.mailout import DeferReason, Mailout, Status
from mailout.outbox.queue.snapshot import QueueForecast
from mailout.store import Store

log = logging.getLogger("mailout.sending")

TIME_SLICE_SECONDS = 60.0
"""Between time slices the provider's quota is asked again."""
ONE_BY_ONE_RATE = 50.0
"""Messages a second up to which `SES_MODE=auto` makes a call for each."""


@dataclass(eq=False, kw_only=True, repr=False)
class Sending:
    """Every step can be repeated after a crash: the store knows how far it is."""

    settings: Settings
    store: Store
    transport: Transport
    journals: Journals
    clock: Clock
    limits: Limits
    worker: str
    pages: PageReports
    queue_forecast: QueueForecast
    deferrals: Deferrals
    test_emails: EmailsForTests
    render_again: Callable[[Mailout], None]
    csv_folder: Path
    inline: bool = False  # calls run in the caller's thread, so that a test's clock can move with them
    stopping: bool = field(default=False, init=False)  # somebody has asked to stop: what takes long waits
    _sender: Sender | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.provider = ProviderLimits(self.store, self.transport, self.clock)
        self._concurrency = ConcurrencyCheck(self.settings.calls_in_flight)
        self._throttling = Throttling()

    @property
    def rehearses(self) -> bool:
        """Whether what it sends is written to a folder and reaches nobody."""
        return self.transport.name == REHEARSING

    def note(self, id: str) -> str | None:
        """What the mailout's summary should say besides."""
        return self._concurrency.notes.get(id)

    def apply_events(self) -> Applied:
        """What SES has reported and the inbox holds: who complained a minute ago gets nothing more."""
        return ingest(self.store, self.settings.bounce_policy, self.settings.sns_topic_arns)

    def freeze(self, id: str) -> Mailout:
        """Write the audience into the outbox, once. A crash in between goes on where it was."""
        self.apply_events()
        mailout = self.store.mailout(id)
        if mailout.frozen_at is None and mailout.is_test:
            self.store.freeze_recipients(id, self.test_emails.recipients())
        elif mailout.frozen_at is None and mailout.kind is Kind.ARTICLE:
            ArticleIntake(self.settings, self.store, rehearses=self.rehearses).freeze(mailout)
        elif mailout.frozen_at is None:
            self.store.normalise_addresses()  # whoever was added since it was enqueued, too
            if mailout.segment is not None and mailout.segment_filter is None:
                segment_names.usable_segment(
                    self.store, mailout.segment
                )  # what became of it meanwhile, in words
            attributes = self._attributes(mailout)
            while self.store.freeze_subscribers(id, attributes=attributes) is not None:
                log.info("%d recipients are in the outbox", self.store.mailout(id).ledger.recipients)
            for problem, n in subscriber_rows.unreachable(self.store).items():
                log.warning("active subscribers who get no mail: %d (%s)", n, LEFT_OUT[problem])
        return self.store.mailout(id)

    def _attributes(self, mailout: Mailout) -> Sequence[str]:
        """What the content needs to know of its readers."""
        if mailout.content_hash is None:
            return ()
        return attributes_of(variables_of(content_rows.content(self.store, mailout.content_hash)))

    def start(self, id: str) -> Mailout:
        """Begin to send it if it is due and mail may leave now; else it waits, and says why."""
        waiting = self.store.mailout(id)
        require_same_transport(waiting, self.rehearses)
        self.apply_events()  # it may have been frozen long ago
        unread: SourceUnavailable | None = None
        if self.settings.require_test:
            try:
                self.render_again(waiting)
            except SourceUnavailable as error:  # what was tested may be what the page says now
                unread = error
            self.freeze(id)  # another content may need to know something else of its readers
        mailout = self.store.start(id, self.worker)
        self.pages.update(id)
        if mailout.status is Status.PROCESSING:
            wait = self.deferrals.why_not_start(mailout)
            if unread is not None:
                wait = after_errors(self.store.now(), mailout.pauses_in_a_row, unread.message)
            if wait is not None:
                return defer(self.store, id, wait)
        return mailout

    def send_time_slice(self, id: str) -> bool:
        """Send for a while; True while there is more to do."""
        report = self.send_for(id, TIME_SLICE_SECONDS)
        return goes_on(report, self.conclude(id, report))

    def send_for(self, id: str, seconds: float | None = None, observer: Observer | None = None) -> RunReport:
        """Send for so long (None: to the end). What was sent stands in the CSV as it goes."""
        mailout = wait_for_store(lambda: self.store.mailout(id), self.clock)
        if (refused := self._refused()) is not None:
            return RunReport(Ended.REFUSED, mailout.ledger, outcome=refused)
        watchers = [CsvPart(self.csv_folder, self.worker, self.clock), *([observer] if observer else [])]
        sender = self._new_sender(self._composer(mailout), watchers, mailout.retry_plan)
        try:
            report = sender.run(id, deadline=self._deadline(seconds))
        except StoreRolledBack as error:  # it neither is being sent nor goes on by itself
            defer(self.store, id, Defer(DeferReason.CONFIGURATION_ERROR, None, str(error)))
            raise
        except StoreError as error:
            if type(error) is not StoreUnavailable:  # one that does not answer cannot be told
                self._release(id)
            raise
        finally:
            self._sender = None
        self._concurrency.add(id, report.call_time, self.queue_forecast.rate)
        return report

    def send_single_mails(
        self, seconds: float, observer: Observer | None = None, *, until_idle: bool = False
    ) -> RunReport:
        """Send what programs hand in, as it comes, for so long. No window holds: a receipt is for now."""
        hold = SingleMailsHold(self.store, self.clock, rehearsal=self.rehearses)
        if (refused := self._refused()) is not None:
            return hold.ended(RunReport(Ended.REFUSED, None, outcome=refused))
        sender = self._new_sender(self._single_composer(), [hold, *([observer] if observer else [])])
        try:
            deadline = self.clock.monotonic() + seconds
            return hold.ended(sender.run(None, deadline=deadline, until_idle=until_idle))
        finally:
            self._sender = None

    def _refused(self) -> Outcome | None:
        """Why the provider takes nothing now; None: it does."""
        allowance = wait_for_store(self.provider.ask, self.clock)
        return allowance.refused if allowance else None

    def _new_sender(
        self, compose: Callable[[Claimed], Mail], watchers: Sequence[Observer], retry: RetryPlan | None = None
    ) -> Sender:
        """The one that `stop` stops from now on. `retry`: another plan than the settings'."""
        options = wait_for_store(self._options, self.clock)
        self._sender = Sender(
            self.store,
            self.transport,
            compose,
            self.journals,
            self.clock,
            replace(options, retry=retry or options.retry),
            [OutcomeLog(), *watchers],
            self._throttling,
        )
        return self._sender

    def stop(self) -> bool:
        """Finish what is in hand and end; False: nothing is being sent. Safe in a signal handler."""
        sender = self._sender
        if sender is not None:
            self.stopping = True
            sender.stop()
        return sender is not None

    def conclude(self, id: str, report: RunReport) -> Mailout:
        """What the end of a run means for the mailout: complete, deferred, to be continued, or let go."""
        return wait_for_store(lambda: self._conclude(id, report), self.clock)

    def _conclude(self, id: str, report: RunReport) -> Mailout:
        if report.ended is Ended.DONE:
            return self.store.complete(id)
        mailout = self.store.mailout(id)
        wait = self.deferrals.why_it_ended(mailout, report)
        if wait is not None:
            return defer(self.store, id, wait)
        return mailout if report.ended is Ended.DEADLINE else self.store.release(id)

    def reap(self) -> int:
        """Give up senders that disappeared; what this machine's journals know of them is not lost."""
        return reap(self.store, self.journals, Timing.of(self.settings.lock_seconds).reap_grace)

    def rate(self) -> float:
        """Messages a second that may leave; 0: no limit."""
        self.provider.ask()
        return self._rate()

    def _rate(self) -> float:
        self.queue_forecast.rate = self.provider.rate(self.settings.send_rate(rehearses=self.rehearses))
        return self.queue_forecast.rate

    def _release(self, id: str) -> None:
        """So that the next run of the queue continues at once, instead of when its lease has run out."""
        try:
            self.store.release(id)
        except StoreError as error:
            log.info("%s continues when its lease has run out: %s", id, error)

    def _deadline(self, seconds: float | None) -> float | None:
        """On the monotonic clock: nothing is begun after the window has closed."""
        now = wait_for_store(self.store.now, self.clock)
        remaining = min(seconds or math.inf, window_closes(self.limits, now) - now)
        return None if remaining == math.inf else self.clock.monotonic() + max(0.0, remaining)

    def _composer(self, mailout: Mailout) -> Composer:
        of = wait_for_store(lambda: list_rows.list_or_none(self.store, mailout.list_key), self.clock)
        return Composer(
            partial(content_rows.content, self.store),
            footer=footer_of(self.settings),
            tokens=tokens_of(self.settings),
            from_email=from_email_of(self.settings),
            from_name=mailout.from_name or self.settings.from_name or "",
            reply_to=mailout.reply_to or self.settings.reply_to,
            list_key=mailout.list_key,
            list_name=of.name if of else None,
            view_url=lambda content: view_url(
                self.settings, mailout.id, None if content == mailout.content_hash else content
            ),
            is_test=mailout.is_test,
            unsubscribe_mailbox=self.settings.unsubscribe_mailbox,
        )

    def _single_composer(self) -> SingleComposer:
        return SingleComposer(
            partial(content_rows.content, self.store),
            footer=lambda: footer_of(self.settings),
            tokens=tokens_of(self.settings) if self.settings.unsubscribe_keys else None,
            from_email=from_email_of(self.settings),
            from_name=self.settings.from_name or "",
            reply_to=self.settings.reply_to,
            transactional_from_email=self.settings.transactional_from_email,
            link_secrets=self.settings.unsubscribe_keys,
            public_url=self.settings.public_url,
            view_url=lambda content: view_url(self.settings, None, content),
        )

    def _options(self) -> SenderOptions:
        settings, first_day = self.settings, outbox_rows.first_day(self.store, self.transport.scope)
        return SenderOptions(
            worker=self.worker,
            rate=self._rate(),
            timing=Timing.of(settings.lock_seconds),
            concurrency=settings.calls_in_flight,
            one_by_one_rate=ONE_BY_ONE_RATE if settings.ses_mode == "auto" else 0.0,
            batch_size=settings.batch_size,
            retry=RetryPlan(settings.max_attempts, settings.retry_delays),
            pace_scope=self.transport.scope,
            circuit_failures=settings.circuit_failures,
            buckets=lambda now: buckets(self.limits, now, first_day, rehearsal=self.rehearses),
            inline=self.inline,
        )


def require_same_transport(mailout: Mailout, rehearses: bool) -> None:
    """A rehearsal must not reach people, and a folder must not use up what they are to get."""
    if mailout.is_rehearsal and not rehearses:
        raise UsageError(
            f"“{mailout.subject}” is a rehearsal: it is written to a folder and goes to nobody.",
            remedy="To send it to people: mailout send, with its page or file. To end the rehearsal: mailout"
            f" queue cancel {mailout.id}",
        )
    if rehearses and not mailout.is_rehearsal:
        raise UsageError(
            f"“{mailout.subject}” goes to people, and MAILOUT_TRANSPORT=folder sends nothing to anybody.",
            remedy="Set MAILOUT_TRANSPORT=ses to go on with it.",
        )


def goes_on(report: RunReport, mailout: Mailout) -> bool:
    """Its time was up, and nothing else keeps it from being sent."""
    return report.ended is Ended.DEADLINE and mailout.status is Status.PROCESSING
