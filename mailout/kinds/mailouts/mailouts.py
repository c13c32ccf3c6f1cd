"""Intake of a mailout: from what a person wrote to a row in the queue, or a clear reason why not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count

from mailout.base import ids
from mailout.base.error_log import ERROR_TABLE, SAME_REFUSAL_SECONDS, ErrorRecord, record_once
from mailout.base.errors import (
    Abort,
    MailoutError,
    NotFound,
    SettingsError,
    SourceUnavailable,
    StoreError,
    UsageError,
)
from mailout.base.settings import Settings
from mailout.insight.history import history_rows
from mailout.insight.page_status.updates import PageReports
from mailout.insight.reporting.phrases import edited_meanwhile
from mailout.kinds.articles.articles import ArticleIntake
from mailout.kinds.articles.port import IntakeStore
from mailout.kinds.mailouts.letters import Letters
from mailout.kinds.mailouts.readiness import (
    AlreadyRehearsed,
    AlreadySent,
    EmailsForTests,
    MarkedAsSent,
    Readiness,
    TakenBack,
    cancelled,
    waits_with_another_text,
)
from mailout.kinds.mailouts.reading import Announcement, LoadedMailout, Reading
from mailout.letters.audience.segment_tree import Tree, whole
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.document import Problem
from mailout.letters.content.from_settings import from_email_of
from mailout.letters.content.port import Kind, MediaStore, Source, SourceMailout
from mailout.letters.content.refs import page_id_of
from mailout.letters.content.variables import as_written, without_fallback
from mailout.outbox.delivery.protocol import RetryPlan
from mailout.outbox.queue import queue_rows, segment_names
from mailout.outbox.queue.deferrals import needs_a_test
from mailout.outbox.queue.mailout import DeferReason, Mailout, NewMailout, Status
from mailout.outbox.queue.port import Request, mailout_or_none
from mailout.readers.web_archive import slug_of

log = logging.getLogger("mailout.intake")

EDITED_MEANWHILE = "edited_after_sending"


class MailoutIntake:
    """From a page or file to a mailout in the queue. What would stop it later stops it here, with nothing
    half-done."""

    def __init__(
        self,
        settings: Settings,
        store: IntakeStore,
        pages: PageReports,
        media: MediaStore,
        source_of: Callable[[str], Source],
        test_emails: EmailsForTests,
        *,
        rehearses: bool,
    ) -> None:
        self.store = store
        self.pages = pages
        self.rehearses = rehearses  # what is sent is written to a folder and reaches nobody
        self.letters = Letters(settings, store, media, source_of, rehearses)
        self._settings = settings
        self._ready = Readiness(settings, store, test_emails, rehearses)
        self._validated: dict[str, Reading] = {}
        self.articles = ArticleIntake(settings, store, rehearses=rehearses)

    def enqueue(self, ref: str, test: bool | None = None, asked_at: float | None = None) -> Mailout:
        """Read the source, refuse what must not be sent, and write the mailout into the queue."""
        return self.enqueue_loaded(self.load(ref, test, asked_at))

    def load(self, ref: str, test: bool | None = None, asked_at: float | None = None) -> LoadedMailout:
        """Read the source, and refuse what was sent before. Repeatable: it writes nothing to the queue.

        `asked_at`: when a page or a request asked for it, where no person waits for the answer.
        """
        reading = self._validated.pop(_name(ref), None) or self._read(ref)
        is_test = reading.is_test(test)
        rehearsal = self.rehearses and not is_test
        by_page = asked_at is not None and test is None
        with self._aborts_recorded(reading.source, asked_at, by_page=by_page):
            known = None if is_test or rehearsal else self._known(reading)
            id = None if rehearsal else self._id(reading.source, is_test)
        # Whoever says that it is for real (the dashboard, --real) says when, too: now.
        not_before = reading.source.send_at if test is None else None
        requested = ref if asked_at is not None and test is False else None
        return LoadedMailout(
            reading,
            is_test=is_test,
            id=id,
            known=known,
            asked_at=asked_at,
            not_before=not_before,
            requested=requested,
            by_page=by_page,
        )

    def enqueue_loaded(self, loaded: LoadedMailout) -> Mailout:
        """Render and check it, and write it into the queue with its content. Repeatable: its id is known."""
        with self._aborts_recorded(loaded.reading.source, loaded.asked_at, by_page=loaded.by_page):
            if loaded.id is None:
                return self._rehearse(loaded.reading)
            if loaded.known is not None:
                self._point_out_edit(loaded.known, loaded.reading)
                return loaded.known
            return self._enqueue_new(loaded, loaded.id)

    def validate(self, ref: str, test: bool | None = None, *, again: bool = False) -> str:
        """The id it would be queued under, or the error that would stop it. Writes nothing to the queue.

        What was validated is what is queued next: a page is read and rendered once, whoever edits it
        meanwhile. `again`: rehearse it once more, although nothing has changed.
        """
        reading = self._validated[_name(ref)] = self._read(ref, again)
        is_test = reading.is_test(test)
        with self._aborts_recorded(reading.source):
            if self.rehearses and not is_test:
                self._ready.check(reading)
                return self._rehearsal(reading)[0]
            known = None if is_test else self._known(reading)
            if known is None:
                self._ready.check(reading, is_test)  # what cannot be rendered is refused now
            elif not has_reached_some(known) and reading.content.hash != known.content_hash:
                raise waits_with_another_text(known, as_written(reading.content.subject))
        return self._id(reading.source, is_test)

    def announcement(self, ref: str, test: bool | None = None) -> Announcement | None:
        """Of a mailout that was validated: to how many people it would go; None: to none."""
        reading = self._validated[_name(ref)]
        source = reading.source
        if self.rehearses or reading.is_test(test):
            return None
        known = self._known(reading)
        subject, name = as_written(source.document.subject), source.from_name or self._settings.from_name
        if known is not None:
            subject = known.subject
        sender, segment = from_email_of(self._settings), source.segment
        if known is not None and known.frozen_at is not None:
            segment, taken = known.segment, known.segment_filter or {}
            people, snoozed, out_of = known.ledger.pending, known.snoozed, taken.get("of", 0)
        else:
            tree: Tree | None = None
            if segment is not None:
                tree = segment_names.usable_segment(self.store, segment).tree
            people, snoozed = (
                self.store.audience_size(source.list_key, tree, snoozed=asked) for asked in (False, True)
            )
            everybody = whole(source.list_key, tree) if tree else None
            out_of = self.store.audience_size(source.list_key, everybody) if tree else 0
        edited = edited_meanwhile(known) if known and self._differs(known, reading) else ""
        return Announcement(subject, people, name, sender, snoozed, edited, segment, out_of)

    @property
    def done_by_hand(self) -> str:
        """For the page of somebody who set it to done and means to send it."""
        settings = self._settings
        return f"{settings.notion_status_send} means done; to send, set {settings.notion_status_ready}."

    def was_edited(self, mailout: Mailout) -> bool:
        """Whether its page or file was changed after some people got it; the page then says what that means.
        False where it cannot be read now."""
        if mailout.kind is Kind.ARTICLE or not has_reached_some(mailout):
            return False
        try:
            return self._point_out_edit(mailout, self._read(mailout.ref))
        except StoreError:
            raise
        except MailoutError as error:
            log.info("%s: whether it was edited is not known: %s", mailout.ref, error)
            return False

    def _point_out_edit(self, mailout: Mailout, reading: Reading) -> bool:
        edited = self._differs(mailout, reading)
        if edited and mailout.kind is Kind.NOTION:
            said = Problem(EDITED_MEANWHILE, edited_meanwhile(mailout))
            self.pages.show_findings(mailout.ref, [said])
        return edited

    @staticmethod
    def _differs(mailout: Mailout, reading: Reading) -> bool:
        """From what some people have got. What the checks refuse now is surely something else."""
        if not has_reached_some(mailout):
            return False
        try:
            return reading.content.hash != mailout.content_hash
        except SourceUnavailable:
            return False  # not known now
        except Abort:
            return True

    def findings(self, ref: str) -> Sequence[Problem]:
        """What to look at in a mailout that was validated and is not in the queue yet."""
        reading = self._validated[_name(ref)]
        return reading.findings if reading.is_rendered else ()

    def _read(self, ref: str, again: bool = False) -> Reading:
        return self.letters.reading(self.letters.read(ref), again)

    def _rehearse(self, reading: Reading) -> Mailout:
        self._ready.check(reading)
        id, known = self._rehearsal(reading)
        return known or self._enqueue(id, reading, is_test=False)

    def _rehearsal(self, reading: Reading) -> tuple[str, Mailout | None]:
        """Its id, of the content too: unchanged it is rehearsed once, unless it is asked for again. One that
        was begun is gone on with."""
        source = reading.source
        if source.already_sent:
            raise MarkedAsSent(as_written(source.document.subject))
        for run in count(1):
            id = ids.rehearsal_id(source.ref, reading.content.hash, run)
            known = mailout_or_none(self.store, id)
            if known is None or known.status in (Status.PENDING, Status.PROCESSING):
                return id, known
            if known.status is Status.COMPLETED and not reading.again:
                raise AlreadyRehearsed(known.subject, known.completed_at)
        raise AssertionError("count() has no end")

    @contextmanager
    def _aborts_recorded(
        self, source_mailout: SourceMailout, asked_at: float | None = None, *, by_page: bool = False
    ) -> Iterator[None]:
        """`by_page`: it is a page that asks, maybe every minute; a person's request is answered each time."""
        try:
            yield
        except Abort as abort:
            if isinstance(abort, AlreadySent) and abort.is_same_ask(asked_at):
                raise
            error = ErrorRecord(abort.code, abort.message, stage="content", mailout=source_mailout.ref)
            if by_page:
                letter = history_rows.latest_of(self.store, [source_mailout.ref]).get(source_mailout.ref)
                since = self.store.now() - SAME_REFUSAL_SECONDS
                record_once(self.store, error, max(since, letter.created_at) if letter else since)
            else:
                self.store.put(ERROR_TABLE, [error])
            if source_mailout.kind is Kind.NOTION:
                rehearsed = isinstance(abort, AlreadyRehearsed)
                self.pages.refuse(source_mailout.ref, abort, rehearsed=rehearsed)
            else:
                self.pages.report_errors()
            raise

    def _known(self, reading: Reading) -> Mailout | None:
        """A real mailout is one mailout, however often it is asked for; its content is the first one."""
        mailout = mailout_or_none(self.store, ids.mailout_id(reading.source.ref))
        if mailout is not None and mailout.status is Status.COMPLETED:
            raise AlreadySent(mailout.subject, mailout.completed_at)
        if mailout is not None and mailout.status is Status.CANCELLED:
            if mailout.ledger.suppressed != mailout.ledger.recipients:
                raise cancelled(mailout)
            return None  # nobody has got it: it may be sent after all
        if mailout is None or mailout.content_hash is None:
            if reading.source.already_sent:
                raise MarkedAsSent(as_written(reading.source.document.subject))
            return None
        return self._with_content_of(mailout, reading) if self._settings.require_test else mailout

    def render_again(self, mailout: Mailout) -> None:
        """Of a page that waited for a test, what it says now: only that may be what was tested.

        A file that the queue cannot find keeps the content it was enqueued with.
        """
        if mailout.kind is Kind.NOTION and mailout.status is Status.PENDING and needs_a_test(mailout):
            self._with_content_of(mailout, self._read(mailout.ref))

    def _with_content_of(self, mailout: Mailout, reading: Reading) -> Mailout:
        """Where nothing of it was sent; a test of the new content lets it go on."""
        if mailout.status is not Status.PENDING or not needs_a_test(mailout):
            return mailout
        content = reading.content
        if content.hash != mailout.content_hash:
            self._ready.check_content(reading)
            keep_content(self.store, content)
            mailout = self.store.set_content(
                mailout.id, content.hash, as_written(content.subject), replace=True
            )
            if without_fallback(content):
                mailout = self.store.set_public(mailout.id, False)
            self._show_findings(reading)
        tested = queue_rows.last_test(self.store, content_hash=content.hash) is not None
        if mailout.defer_reason is DeferReason.UNTESTED and tested:
            mailout = self.store.resume(mailout.id)
        return mailout

    def _enqueue_new(self, loaded: LoadedMailout, id: str) -> Mailout:
        reading, is_test = loaded.reading, loaded.is_test
        self._ready.check(reading, is_test)  # renders it, before the queue knows of it
        self._require_still_asked(loaded)
        ref, content = reading.source.ref, reading.content
        if is_test and (
            waiting := queue_rows.unbegun_test(self.store, ref, content.hash, rehearsal=self.rehearses)
        ):
            return waiting  # the answer to whoever asked first was lost
        self.store.discard_unbegun(id)  # cancelled before it began, and now asked for again
        mailout = self._enqueue(
            id, reading, is_test=is_test, not_before=loaded.not_before, requested=loaded.requested
        )
        if mailout.status is Status.CANCELLED:
            raise cancelled(mailout)
        return mailout

    def _require_still_asked(self, loaded: LoadedMailout) -> None:
        """Its writer may have set it back to Draft, or made it a test, while it was read; and Notion's search
        may tell what the page was. Whoever asks for it over HTTP means it as it is, Ready or not."""
        source, reporter = loaded.reading.source, self.pages.reporter
        if not loaded.by_page or source.kind is not Kind.NOTION or reporter is None:
            return
        if Request(source.ref) in queue_rows.asked(self.store, waiting=0):
            return
        if not reporter.still_asks(source.ref, self.store.now(), is_test=loaded.is_test):
            raise TakenBack(as_written(source.document.subject))

    def _enqueue(
        self,
        id: str,
        reading: Reading,
        *,
        is_test: bool,
        not_before: float | None = None,
        requested: str | None = None,
    ) -> Mailout:
        source_mailout, content = reading.source, reading.content
        now = self.store.now()
        starts_at = max(now + self._settings.send_delay, not_before or 0.0)  # the delay: time to take it back
        keep_content(self.store, content)  # first: a mailout without it would fail for everybody
        new = NewMailout(
            id=id,
            kind=source_mailout.kind,
            ref=source_mailout.ref,
            subject=as_written(content.subject),
            list_key=source_mailout.list_key,
            segment=source_mailout.segment,
            from_name=source_mailout.from_name,
            reply_to=source_mailout.reply_to,
            public=self._public(reading, is_test=is_test),
            slug=None if is_test or self.rehearses else slug_of(content.subject, id),
            is_test=is_test,
            is_rehearsal=self.rehearses,
            scheduled_at=starts_at if starts_at > now and not is_test else None,
            retry_plan=RetryPlan(self._settings.max_attempts, self._settings.retry_delays),
            content_hash=content.hash,
        )
        try:
            mailout = self.store.enqueue(new, requested=requested)
        except NotFound:
            raise TakenBack(new.subject) from None
        self.store.put(
            ERROR_TABLE,
            [ErrorRecord(p.code, p.message, stage="content", mailout=mailout.id) for p in reading.findings],
        )
        self._show_findings(reading)
        return mailout

    def _public(self, reading: Reading, *, is_test: bool) -> bool | None:
        """Whether it goes into the archive on the web; None: its list decides."""
        possible = not (is_test or self.rehearses or without_fallback(reading.content))
        return reading.source.public if possible else False

    def _show_findings(self, reading: Reading) -> None:
        if reading.source.kind is Kind.NOTION:
            self.pages.show_findings(reading.source.ref, reading.findings)

    def _id(self, source_mailout: SourceMailout, is_test: bool) -> str:
        if not is_test:
            return ids.mailout_id(source_mailout.ref)
        return ids.test_run_id(source_mailout.ref, queue_rows.next_test_run(self.store, source_mailout.ref))

    def refusals(self, reading: Reading) -> Iterator[MailoutError]:
        """Everything that would keep it from being sent as it is set up now."""
        source, is_test = reading.source, reading.source.is_test
        checks: tuple[Callable[[], object], ...] = (
            lambda: self._known(reading) if not (is_test or self.rehearses) else None,
            lambda: self._ready.check_setup(is_test, source.list_key, source.segment),
            lambda: self._ready.check_content(reading, is_test),
        )
        for check in checks:
            try:
                check()
            except (Abort, UsageError, SettingsError) as error:
                yield error


def has_reached_some(mailout: Mailout) -> bool:
    """It is not over, and some people have got it."""
    open_ = mailout.status in (Status.PENDING, Status.PROCESSING)
    return open_ and bool(mailout.ledger.sent + mailout.ledger.unknown + mailout.ledger.in_flight)


def _name(ref: str) -> str:
    """A page has one, whether its id or its address was given."""
    return page_id_of(ref) or ref
