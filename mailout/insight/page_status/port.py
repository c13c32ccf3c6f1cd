"""What page status needs: the page to write to, and the store's list of reports that are due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from mailout.base.error_log import ErrorLog, ErrorRecord
from mailout.insight.history.port import WrittenPage
from mailout.insight.page_status.state import PageState
from mailout.outbox.delivery.port import Outbox
from mailout.outbox.queue.port import Queue


class PageReporter(Protocol):
    """Shows, where mailouts are written, what became of them. SourceError if it cannot be written to."""

    keeps_errors: bool  # there is an errors database
    finds_ready: bool  # there is a database of mailouts, in which pages that ask to be sent are found
    later: Mapping[str, float] | None  # whose time has not come, as `ready` found them: their last edits

    def ready(self, now: float) -> Sequence[str]:
        """Pages that ask to be sent and whose time has come, by their ref."""

    def ready_at(self, ref: str) -> float | None:
        """From when on this one page asks to be sent (0: at once); None: it does not."""

    def still_asks(self, ref: str, now: float, *, is_test: bool) -> bool:
        """Whether this one page asks to be sent now, as a test or for real."""

    def done_by_hand(self, since: float) -> Sequence[str]:
        """Pages edited since then that say they are done and were never sent, by their ref."""

    def written(self) -> Sequence[WrittenPage]:
        """Drafts, and pages that ask to be sent, the last edited first."""

    def note(self, ref: str, text: str) -> None:
        """A line for whoever reads the page."""

    def show_findings(self, ref: str, findings: Sequence[str]) -> None:
        """What its author should look at, as one note that is kept up to date; none: nothing any more."""

    def show_waiting(self, ref: str, why: str | None) -> None:
        """Of a page that asks to be sent and is not a mailout yet, as one note that is kept up to date.
        None: it no longer waits."""

    def show(self, ref: str, state: PageState, *, if_ready: bool = False) -> None:
        """Write it on the page; twice is once. `if_ready`: only if it still asks to be sent.

        A test run is shown only on a page that is a test (its end also on one that still says it is being
        sent), and never over the end of a real one.
        """

    def record(self, error: ErrorRecord, page: str | None, subject: str | None) -> None:
        """A page of its own in the errors database. `page` and `subject` are its mailout's, if known."""


class PageStore(ErrorLog, Outbox, Queue, Protocol):
    """What a page is updated from, and what it and the errors database do not show yet: that outlives an
    outage of theirs."""

    def ask_report(self, mailout: str) -> None:
        """There is something new to show of it."""

    def report_made(self, mailout: str, asked: int) -> None:
        """Told, as it was asked for then; what was asked for since stays due."""

    def errors_reported(self, numbers: Sequence[int]) -> None: ...
