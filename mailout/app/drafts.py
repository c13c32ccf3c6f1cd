"""Letters that are written and not sent yet, for somebody who looks at them before they go."""

from __future__ import annotations

import threading
from collections.abc import Callable

from mailout.app.wiring import media_store, notion_pages, sources
from mailout.base.clock import Clock, SystemClock
from mailout.base.errors import Abort, SourceUnavailable
from mailout.base.settings import Settings
from mailout.insight.history.history_rows import keep_written_pages
from mailout.insight.page_status.updates import PageReports
from mailout.kinds.mailouts.drafts import Draft
from mailout.kinds.mailouts.mailouts import MailoutIntake
from mailout.kinds.mailouts.readiness import EmailsForTests
from mailout.letters.content.document import problem_line
from mailout.letters.content.preflight import findings
from mailout.outbox.queue.mailout import Mailout
from mailout.store import Store

DRAFT_CACHE_SECONDS = 20.0
"""The page, its frame and its other views show one reading."""
DRAFTS_CACHED = 16
NOTION_SECONDS = 5.0
"""For somebody who waits: one try."""


class Drafts:
    """Fulfils `DraftReader`."""

    def __init__(self, settings: Settings, store: Store, clock: Clock | None = None) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._known: dict[str, Draft] = {}
        self._made: MailoutIntake | None = None
        self._close: Callable[[], None] | None = None

    def close(self) -> None:
        """Its connections to Notion, if there are any."""
        if self._close is not None:
            self._close()

    def read(self, ref: str, *, again: bool = False) -> Draft:
        """As it is written now, or was a few seconds ago."""
        now = self._clock.now()
        with self._lock:
            known = self._known.get(ref)
        if known is not None and not again and 0 <= now - known.read_at < DRAFT_CACHE_SECONDS:
            return known
        draft = self._read(ref, now)
        with self._lock:
            self._known = dict([*self._known.items()][-DRAFTS_CACHED:]) | {ref: draft}
        return draft

    def look(self) -> None:
        """Find out which pages are drafts or Ready, now."""
        reporter = self._intake.pages.reporter
        if reporter is None or not reporter.finds_ready:
            raise SourceUnavailable(
                "Notion is not set up.", remedy="Set NOTION_TOKEN and NOTION_DB_MAILOUTS."
            )
        keep_written_pages(self._store, reporter.written())

    def taken_back(self, ref: str) -> None:
        """Its page no longer says until when it waits."""
        self._intake.pages.show_planned(ref, None)

    def was_edited(self, mailout: Mailout) -> bool:
        """After some people got it."""
        return self._intake.was_edited(mailout)

    @property
    def _intake(self) -> MailoutIntake:
        """Made on first use: a gateway that nobody looks at needs none of it."""
        with self._lock:
            if self._made is None:
                settings, store, clock = self._settings, self._store, self._clock
                notion = notion_pages(settings, clock, seconds=NOTION_SECONDS, store=store)
                self._close = None if notion is None else notion.close
                self._made = MailoutIntake(
                    settings,
                    store,
                    PageReports(store, notion, clock, settings.mailout_transport),
                    media_store(settings),
                    sources(notion, clock),
                    EmailsForTests(settings),
                    rehearses=settings.rehearses,
                )
            return self._made

    def _read(self, ref: str, now: float) -> Draft:
        source = self._intake.letters.read(ref)
        reading = self._intake.letters.reading(source)
        stops = [str(error) for error in self._intake.refusals(reading)]
        whose = source.list_key, source.segment, source.from_name
        try:
            document, content = reading.rendered
        except Abort as error:
            try:  # a picture that readers could not find may still be shown here
                document, content = self._intake.letters.draft(source)
            except Abort:
                return Draft(*whose, None, [*dict.fromkeys([*stops, str(error)])], (), now)
        return Draft(*whose, content, stops, [problem_line(one) for one in findings(document, content)], now)
