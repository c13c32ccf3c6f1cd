"""Intake of a mailout: from what a person wrote to a row in the queue, or a clear reason why not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from mailout import ids
from mailout.audience.address_list import parse_address_list
from mailout.content.checks import check_content
from mailout.content.document import Document
from mailout.content.footer import Footer
from mailout.content.layout import render
from mailout.content.media import keep_media
from mailout.content.model import Content
from mailout.content.notion.links import page_id_of
from mailout.content.port import Kind, MediaStore, Source, SourceMailout
from mailout.delivery.port import REHEARSING, Transport
from mailout.error_log import ErrorRecord
from mailout.errors import Abort, AbortCode, MailoutError, NotFound, SettingsError, UsageError
from mailout.intake.port import IntakeStore
from mailout.page_status.updates import PageReports
from mailout.queue.holds import needs_a_test
from mailout.queue.mailout import DeferReason, Mailout, NewMailout, Status
from mailout.queue.port import Recipient
from mailout.redact import redact
from mailout.settings import Settings

log = logging.getLogger("mailout.taking_up")


@dataclass(frozen=True, slots=True)
class Announcement:
    """What a person should know before a mailout goes to people."""

    subject: str
    people: int
    from_name: str | None
    from_email: str


class LoadedMailout:
    """A mailout as it was read, before it is rendered. No dataclass: Prefect would walk through all of it."""

    def __init__(
        self, source: SourceMailout, *, is_test: bool, id: str | None, known: Mailout | None, again: bool
    ) -> None:
        self.source = source
        self.is_test = is_test
        self.id = id  # None: a rehearsal's id is of its rendered content, too
        self.known = known  # it is in the queue already, with its content
        self.again = again

    @property
    def subject(self) -> str:
        return self.known.subject if self.known else self.source.document.subject


class MailoutIntake:
    """The engine's first part. Whatever would stop a mailout later stops it here, with nothing half-done."""

    settings: Settings
    store: IntakeStore
    pages: PageReports
    _media: MediaStore
    _source_of: Callable[[str], Source]
    _validated: dict[str, tuple[SourceMailout, bool]]

    _transport: Transport
    _left_out: set[str]

    @property
    def rehearses(self) -> bool:
        """Whether what it sends is written to a folder and reaches nobody."""
        return self._transport.name == REHEARSING

    def enqueue(self, ref: str, test: bool | None = None) -> Mailout:
        """Read the source, refuse what must not be sent, and write the mailout into the queue.

        Whatever would stop it later stops it here, before the queue knows of it: nothing is half-done.
        """
        return self.enqueue_loaded(self.load(ref, test))

    def load(self, ref: str, test: bool | None = None) -> LoadedMailout:
        """Read the source, and refuse what was sent before. Repeatable: it writes nothing to the queue."""
        validated = self._validated.pop(_name(ref), None)
        source_mailout, again = validated if validated is not None else (self.source_mailout(ref), False)
        is_test = source_mailout.is_test if test is None else test
        rehearsal = self.rehearses and not is_test
        with self._aborts_written_down(source_mailout):
            known = None if is_test or rehearsal else self._known(source_mailout)
            id = None if rehearsal else self._id(source_mailout, is_test)
        return LoadedMailout(source_mailout, is_test=is_test, id=id, known=known, again=again)

    def enqueue_loaded(self, loaded: LoadedMailout) -> Mailout:
        """Render and check it, and write it into the queue with its content. Repeatable: its id is known."""
        with self._aborts_written_down(loaded.source):
            if loaded.id is None:
                return self._rehearse(loaded.source, loaded.again)
            return loaded.known or self._write_down(loaded.source, loaded.id, loaded.is_test)

    def validate(self, ref: str, test: bool | None = None, *, again: bool = False) -> str:
        """The id it would be queued under, or the error that would stop it. Writes nothing to the queue.

        What was validated is what is queued next: a page is read once, whoever writes on meanwhile.
        `again`: rehearse it once more, although nothing has changed.
        """
        source_mailout = self.source_mailout(ref)
        self._validated[_name(ref)] = (source_mailout, again)
        is_test = source_mailout.is_test if test is None else test
        with self._aborts_written_down(source_mailout):
            if self.rehearses and not is_test:
                self._check_ready(is_test, source_mailout.list_key)
                id, _ = self._rehearsal(source_mailout, self.render(source_mailout)[1], again)
                return id
            known = None if is_test else self._known(source_mailout)
            if known is None:
                self._check_ready(is_test, source_mailout.list_key)
                self.render(source_mailout)
        return self._id(source_mailout, is_test)

    def announcement(self, ref: str, test: bool | None = None) -> Announcement | None:
        """Of a mailout that was looked over: to how many people it would go; None: it goes to none."""
        source_mailout, _ = self._validated[_name(ref)]
        if self.rehearses or (source_mailout.is_test if test is None else test):
            return None
        try:
            known = self.store.mailout(ids.mailout_id(source_mailout.ref))
        except NotFound:
            known = None
        if known is not None and known.frozen_at is not None:
            people = known.ledger.pending
        else:
            people = self.store.audience_size(source_mailout.list_key)
        name = source_mailout.from_name or self.settings.from_name
        return Announcement(source_mailout.document.subject, people, name, self._from_email())

    def _rehearse(self, source_mailout: SourceMailout, again: bool) -> Mailout:
        self._check_ready(False, source_mailout.list_key)
        document, content = self.render(source_mailout)
        id, known = self._rehearsal(source_mailout, content, again)
        return known or self._enqueue(id, source_mailout, document, content, is_test=False)

    def _rehearsal(
        self, source_mailout: SourceMailout, content: Content, again: bool
    ) -> tuple[str, Mailout | None]:
        """Its id, of the content too: unchanged it is rehearsed once, unless it is asked for again. One that
        was begun is gone on with."""
        if source_mailout.already_sent:
            raise already_sent(source_mailout.document.subject)
        for run in count(1):
            id = ids.rehearsal_id(source_mailout.ref, content.hash, run)
            try:
                known = self.store.mailout(id)
            except NotFound:
                return id, None
            if known.status in (Status.PENDING, Status.PROCESSING):
                return id, known
            if known.status is Status.COMPLETED and not again:
                raise already_rehearsed(known)
        raise AssertionError("count() has no end")

    @contextmanager
    def _aborts_written_down(self, source_mailout: SourceMailout) -> Iterator[None]:
        try:
            yield
        except Abort as abort:
            error = ErrorRecord(abort.code, abort.message, stage="content", mailout=source_mailout.ref)
            self.store.record_errors([error])
            if source_mailout.kind is Kind.NOTION:
                already_sent = abort.code is AbortCode.MAILOUT_ALREADY_SENT
                rehearsed = isinstance(abort, AlreadyRehearsed)
                self.pages.refuse(source_mailout.ref, already_sent=already_sent, rehearsed=rehearsed)
            else:
                self.pages.tell_errors()
            raise

    def _known(self, source_mailout: SourceMailout) -> Mailout | None:
        """A real mailout is one mailout, however often it is asked for; its content is the first one."""
        try:
            mailout = self.store.mailout(ids.mailout_id(source_mailout.ref))
        except NotFound:
            if source_mailout.already_sent:
                raise already_sent(source_mailout.document.subject) from None
            return None
        if mailout.status is Status.COMPLETED:
            raise already_sent(mailout.subject)
        if mailout.status is Status.CANCELLED and mailout.ledger.suppressed == mailout.ledger.recipients:
            return None  # nobody has got it: it may be sent after all
        if mailout.status is Status.CANCELLED:
            raise cancelled(mailout)
        if mailout.content_hash is None and source_mailout.already_sent:
            raise already_sent(source_mailout.document.subject)
        if mailout.content_hash and self.settings.require_test:
            return self._with_content_of(mailout, source_mailout)
        return mailout if mailout.content_hash else None

    def render_again(self, mailout: Mailout) -> None:
        """Of a page that waited for a test, what it says now: only that may be what was tested.

        A file that the queue cannot find keeps the content it was taken up with.
        """
        if mailout.kind is Kind.NOTION and mailout.status is Status.PENDING and needs_a_test(mailout):
            self._with_content_of(mailout, self.source_mailout(mailout.ref))

    def _with_content_of(self, mailout: Mailout, source_mailout: SourceMailout) -> Mailout:
        """Where nothing of it has left; a test of the new content lets it go on."""
        if mailout.status is not Status.PENDING or not needs_a_test(mailout):
            return mailout
        _, content = self.render(source_mailout)
        if content.hash != mailout.content_hash:
            self.store.put_content(content)
            mailout = self.store.set_content(mailout.id, content.hash, content.subject, replace=True)
        tested = self.store.last_test(content_hash=content.hash) is not None
        if mailout.defer_reason is DeferReason.UNTESTED and tested:
            mailout = self.store.resume(mailout.id)
        return mailout

    def _write_down(self, source_mailout: SourceMailout, id: str, is_test: bool) -> Mailout:
        self._check_ready(is_test, source_mailout.list_key)
        document, content = self.render(source_mailout)
        self.store.discard_unbegun(id)  # taken back before it began, and now asked for again
        mailout = self._enqueue(id, source_mailout, document, content, is_test=is_test)
        if mailout.status is Status.CANCELLED:
            raise cancelled(mailout)
        return mailout

    def _enqueue(
        self, id: str, source_mailout: SourceMailout, document: Document, content: Content, *, is_test: bool
    ) -> Mailout:
        mailout = self.store.enqueue(
            NewMailout(
                id=id,
                kind=source_mailout.kind,
                ref=source_mailout.ref,
                subject=content.subject,
                list_key=source_mailout.list_key,
                from_name=source_mailout.from_name,
                is_test=is_test,
                is_rehearsal=self.rehearses,
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

    def _check_ready(self, is_test: bool, list_key: str | None) -> None:
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
        if list_key is not None and not self.store.anybody_on(list_key):
            raise UsageError(
                f"There is nobody to send it to: no active subscriber is on the list {list_key}.",
                remedy="Correct its name, or bring people onto it: subscribers import FILE.csv --list NAME",
            )

    def _id(self, source_mailout: SourceMailout, is_test: bool) -> str:
        if not is_test:
            return ids.mailout_id(source_mailout.ref)
        return ids.test_run_id(source_mailout.ref, self.store.next_test_run(source_mailout.ref))

    def source_mailout(self, ref: str) -> SourceMailout:
        return self._source_of(ref).load(ref)

    def render(self, source_mailout: SourceMailout) -> tuple[Document, Content]:
        """The source's pictures kept, its layout and footer around it."""
        footer = self.footer()
        document = keep_media(
            source_mailout.document, source_mailout.read_media, self._media, public=not self.rehearses
        )
        return document, render(document, footer)

    def refusals(self, source_mailout: SourceMailout) -> Iterator[MailoutError]:
        """Everything that would keep it from being sent as it is set up now."""
        for check in (
            lambda: self._known(source_mailout) if not (source_mailout.is_test or self.rehearses) else None,
            lambda: self._check_ready(source_mailout.is_test, source_mailout.list_key),
            lambda: self.render(source_mailout),
        ):
            try:
                check()
            except (Abort, UsageError, SettingsError) as error:
                yield error

    def draft(self, source_mailout: SourceMailout) -> tuple[Document, Content]:
        """As `render`, for a person to look at: pictures may be where only this machine finds them."""
        document = keep_media(source_mailout.document, source_mailout.read_media, self._media)
        return document, render(document, self.footer())

    def _test_recipients(self) -> Sequence[Recipient]:
        parsed = parse_address_list(self.settings.test_emails)
        for written, reason in parsed.rejected:
            if written not in self._left_out:  # once a process is enough
                self._left_out.add(written)
                log.warning("TEST_EMAILS: %s is left out (%s)", redact(written), reason)
        if not parsed.addresses:
            raise Abort(
                AbortCode.TEST_EMAILS_EMPTY,
                "a test run goes to TEST_EMAILS, and there is no valid address in it.",
                remedy="Set TEST_EMAILS to one or more addresses, separated by commas.",
            )
        return [Recipient(address) for address in parsed.addresses]

    def footer(self) -> Footer:
        settings = self.settings
        secret = settings.unsubscribe_secret
        return Footer.required(
            org_name=settings.org_name,
            org_address=settings.org_address,
            unsubscribe_base_url=settings.unsubscribe_base_url,
            unsubscribe_secret=secret.get_secret_value() if secret else None,
        )

    def _from_email(self) -> str:
        if not self.settings.from_email:
            raise SettingsError(
                "FROM_EMAIL: is missing.", remedy="Set it to the address that letters come from."
            )
        return self.settings.from_email


def _name(ref: str) -> str:
    """A page has one, whether its id or its address was given."""
    return page_id_of(ref) or ref


def already_sent(subject: str) -> Abort:
    return Abort(
        AbortCode.MAILOUT_ALREADY_SENT,
        f"“{subject}” has been sent; a real mailout goes out once.",
        remedy="To send to those that failed: `mailout queue retry`. For a trial: `--test`.",
    )


def cancelled(mailout: Mailout) -> UsageError:
    return UsageError(
        f"This mailout was cancelled on its way ({mailout.id}): some people may have got it.",
        remedy="To send it all the same, give the page or file another id.",
    )


class AlreadyRehearsed(Abort):
    """The same content was written to the folder before."""


def already_rehearsed(mailout: Mailout) -> AlreadyRehearsed:
    return AlreadyRehearsed(
        AbortCode.MAILOUT_ALREADY_SENT,
        f"“{mailout.subject}” has been rehearsed and has not changed since.",
        remedy="To rehearse it all the same: --again. To send it to people: MAILOUT_TRANSPORT=ses.",
    )
