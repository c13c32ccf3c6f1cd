"""Pages as mailouts: read as sources, updated with what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial

from mailout.adapters.notion.calls import Json, NotionConfig
from mailout.adapters.notion.downloads import download
from mailout.adapters.notion.source import NotionSource
from mailout.base.addresses import Dropped, normalise
from mailout.base.clock import Clock
from mailout.base.error_log import ErrorRecord
from mailout.base.errors import SourceError, SourceNotFound, UsageError
from mailout.base.select import Writes
from mailout.insight.page_status import writer_notes
from mailout.insight.page_status.state import PageState, PageStatus
from mailout.insight.page_status.writer_notes import NO_LONGER_WAITING, TEST, TEST_ARRIVED, WAITING
from mailout.letters.content.languages import LANGUAGE_CODE
from mailout.letters.content.notion import render
from mailout.letters.content.notion.page import NotionPage, Value
from mailout.letters.content.port import Kind, SourceMailout
from mailout.letters.content.refs import page_id_of

NO_PROPERTIES = frozenset({"status", "is_test", "is_rehearsal", "shown_before", "awaits_test", "note"})
"""Of a page's state, what is not written under its own name."""

FINDINGS = "Worth checking in this letter:"
FINDINGS_BEFORE = "Check before this letter goes out:"  # as earlier versions wrote it
NO_FINDINGS = f"{FINDINGS} nothing any more."


class NotionPages(NotionSource):
    """A `Source` and a `PageReporter`. Reports are less patient: they are made again in a minute."""

    def __init__(self, config: NotionConfig, clock: Clock, store: Writes | None = None) -> None:
        super().__init__(config, clock, store)
        self._reports = NotionSource(replace(config, timeout=min(config.timeout, 10.0), attempts=3), clock)
        self._statuses = config.statuses

    def load(self, ref: str) -> SourceMailout:
        id = page_id_of(ref)
        if id is None:
            raise UsageError(f"{ref} is no Notion page.", remedy="Give its id or its address.")
        answer = self.page_not_in_trash(id)
        source = str((answer.get("parent") or {}).get("data_source_id"))
        self._ids.require_names(source, answer.get("properties") or {})
        page = _sound(self.read(answer))
        self._require_test_box(answer)
        document = render(self.load_blocks(id), about=page)
        read_media = partial(download, clock=self._clock)
        sent = self._was_sent(page)
        mailout = page.mailout(Kind.NOTION, page.id, document, read_media, already_sent=sent)
        return replace(mailout, send_at=page.send_at)

    def _require_test_box(self, answer: Json) -> None:
        """A page outside of the mailouts database needs none: it is named in a command."""
        name = self._config.properties["is_test"]
        if name in (answer.get("properties") or {}) or not self._config.db_mailouts:
            return
        if self.is_mailout(answer):
            raise UsageError(
                f"The mailouts database has no property {name}: nobody can tell a test from a real letter.",
                remedy="Add it as a checkbox, or set NOTION_PROP_IS_TEST.",
                for_writer=f"The database has no checkbox {name}. Add it, then set Ready again.",
            )

    def ready_at(self, ref: str) -> float | None:
        page = self._ready(ref)
        return page.asks_from if page else None

    def still_asks(self, ref: str, now: float, *, is_test: bool) -> bool:
        page = self._ready(ref)
        return page is not None and page.is_test == is_test and page.asks_from <= now

    def _ready(self, ref: str) -> NotionPage | None:
        answer = self.page(ref)
        if answer.get("in_trash") or answer.get("archived") or not self.is_mailout(answer):
            return None
        page = self.read(answer)
        return page if page.status == self._statuses[PageStatus.READY] else None

    def note(self, ref: str, text: str) -> None:
        self._reports.notes.add(ref, text)

    def show_findings(self, ref: str, findings: Sequence[str]) -> None:
        text = "\n".join([FINDINGS, *(f"• {line}" for line in findings)]) if findings else None
        self._reports.notes.keep(ref, [FINDINGS, FINDINGS_BEFORE], text, NO_FINDINGS)

    def show_waiting(self, ref: str, why: str | None) -> None:
        self._reports.notes.keep(ref, WAITING, why, NO_LONGER_WAITING)

    def show(self, ref: str, state: PageState, *, if_ready: bool = False) -> None:
        answer = self._reports.page_not_in_trash(ref)
        page = self._reports.read(answer)
        is_ready = page.status == self._statuses[PageStatus.READY]
        if (if_ready and not is_ready) or (state.awaits_test and is_ready and page.is_test):
            return
        ends = state.status is PageStatus.DRAFT and page.status == self._statuses[PageStatus.SENDING]
        is_shown = page.is_test or ends  # it may have been unticked since the test began
        if state.is_test and (not is_shown or page.status == self._statuses[PageStatus.SEND]):
            return
        if state.is_rehearsal and self._was_sent(page):
            return
        if page.status == self._statuses[PageStatus.DRAFT] and _overwrites_draft(state):
            self._reports.notes.add_once(ref, writer_notes.ON_ITS_WAY, answer)
        status = self._statuses[state.status]
        changes = page.status != status
        lacks = changes and self._reports.lacks_option(answer, status)
        if lacks:
            said = writer_notes.no_option(status, tests_wait=state.is_test and is_ready)
            state = replace(state, note=f"{state.note} {said}" if state.note else said)
        self._write_note(ref, state, changes=changes, once=if_ready or lacks, answer=answer)
        values: dict[str, Value] = {} if lacks else {"status": status}
        for one in fields(state):
            value = getattr(state, one.name)
            if one.name not in NO_PROPERTIES and value is not None:
                values[one.name] = value
        self._reports.update_page(ref, values, answer)
        if lacks:
            raise SourceError(f"The status has no option {status!r}.", remedy="Add it in Notion.")

    def _write_note(self, ref: str, state: PageState, *, changes: bool, once: bool, answer: Json) -> None:
        """Before the status: once that is there, the note counts as written. What it waits for is one note,
        brought up to date until it goes on. `once`: the status may not change."""
        notes, note = self._reports.notes, state.note
        waits = note if note is not None and note.startswith(WAITING) else None
        if waits or changes or state.status is PageStatus.SENDING:
            notes.keep(ref, WAITING, waits, NO_LONGER_WAITING)
        tested = note if note is not None and note.startswith(TEST) else None
        if state.is_test and state.status is PageStatus.DRAFT:
            notes.keep(ref, [TEST], tested, TEST_ARRIVED)
        if note is None or waits or tested or not changes:
            return
        if once:
            notes.add_once(ref, note, answer)
        else:
            notes.add(ref, note)

    def record(self, error: ErrorRecord, page: str | None, subject: str | None) -> None:
        if subject is None and page is not None:  # it stopped before it was a mailout
            subject = self._subject_of(page)
        self._reports.create_error_page(error, page, subject)

    def close(self) -> None:
        super().close()
        self._reports.close()

    def _subject_of(self, page: str) -> str | None:
        try:
            return self._reports.read(self._reports.page(page)).subject or None
        except SourceNotFound:
            return None

    def _was_sent(self, page: NotionPage) -> bool:
        """A failed run has its `sent_at`, too: only `retry` continues it."""
        return page.sent_at is not None or page.status == self._statuses[PageStatus.SEND]


def _overwrites_draft(state: PageState) -> bool:
    """Whether somebody has set it to draft since, to stop it. A page that awaits its test may be edited."""
    tried_out = state.is_test or state.is_rehearsal or state.awaits_test
    return state.shown_before and state.status is PageStatus.SENDING and not tried_out


def _sound(page: NotionPage) -> NotionPage:
    """Refused by name: a reply that goes nowhere is found out by readers alone."""
    if page.unreadable:
        raise UsageError(
            page.unreadable,
            remedy="Change it in Notion, or set NOTION_PROP_*.",
            for_writer=f"{page.unreadable} Change it, then set Ready again.",
        )
    if page.reply_to and isinstance(normalise(page.reply_to), Dropped):
        raise UsageError(
            f"The page's reply_to is no address: {page.reply_to}.",
            remedy="Correct it, or leave it empty.",
            for_writer="The page's reply_to is no address. Correct it or empty it, then set Ready again.",
        )
    if page.language and not LANGUAGE_CODE.fullmatch(page.language):
        raise UsageError(
            f"The page's language is no language's code: {page.language}.",
            remedy="Write it as `en`.",
            for_writer=f"The page's language, {page.language}, is no language's code. Write it as `en`, then"
            " set Ready again.",
        )
    return page
