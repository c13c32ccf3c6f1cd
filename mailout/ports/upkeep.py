"""Beside the mail itself: contents, errors, reports, requests, alerts, counts, archives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mailout.alerts.model import Known, Signs
from mailout.content.model import Content
from mailout.metrics.model import Sample, Vitals
from mailout.queue.model import Mailout
from mailout.queue.request import Request
from mailout.reporting.page_state import PageState


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """One line of the errors database (SPEC §10); equal ones are grouped when they are shown."""

    code: str
    message: str
    stage: str  # content, audience, delivery, feedback, report
    provider: str | None = None
    mailout: str | None = None
    email: str | None = None
    attempts: int | None = None
    at: float = 0.0


class Records(Protocol):
    """Contents by hash, errors, dead letters."""

    def put_content(self, content: Content) -> str: ...
    def content(self, content_id: str) -> Content: ...
    def record_errors(self, errors: Sequence[ErrorRecord]) -> None: ...
    def errors(self, mailout: str | None = None, limit: int = 100) -> Sequence[ErrorRecord]: ...
    def dead_letter(self, topic: str, payload: Mapping[str, Any], error: str) -> None: ...
    def dead_letters(self, limit: int = 100) -> Sequence[Mapping[str, Any]]: ...


class PageReporter(Protocol):
    """Tells the place where mailouts are written what became of them. SourceError if it cannot be told."""

    keeps_errors: bool  # there is an errors database
    finds_ready: bool  # there is a database of mailouts, in which pages that ask to be sent are found

    def ready(self, now: float) -> Sequence[str]:
        """Pages that ask to be sent and whose time has come, by their ref."""
        ...

    def ready_at(self, ref: str) -> float | None:
        """From when on this one page asks to be sent (0: at once); None: it does not."""
        ...

    def done_by_hand(self, since: float) -> Sequence[str]:
        """Pages edited since then that say they are done and were never sent, by their ref."""
        ...

    def note(self, ref: str, text: str) -> None:
        """A line for whoever reads the page."""
        ...

    def show(self, ref: str, state: PageState, *, if_ready: bool = False) -> None:
        """Write it on the page; twice is once. `if_ready`: only if it still asks to be sent.

        A test run is shown only on a page that is a test, and never over the end of a real one.
        """
        ...

    def record(self, error: ErrorRecord, page: str | None, subject: str | None) -> None:
        """A page of its own in the errors database. `page` and `subject` are its mailout's, if known."""
        ...


class DueReports(Protocol):
    """What a mailout's page and the errors database have yet to be told. It outlives an outage of theirs."""

    def ask_report(self, mailout: str) -> None:
        """There is something to tell of it."""
        ...

    def due_reports(self) -> Mapping[str, int]:
        """Mailouts, and how often they have been asked for: what `report_made` needs."""
        ...

    def report_made(self, mailout: str, asked: int) -> None:
        """Told, as it was asked for then; what was asked for since stays due."""
        ...

    def unreported_errors(self, since: float, limit: int = 100) -> Mapping[int, ErrorRecord]:
        """The oldest first, by their number."""
        ...

    def errors_reported(self, numbers: Sequence[int]) -> None: ...


class Requests(Protocol):
    """What was asked for from outside: written down first, so that a lost event costs a minute at most."""

    def ask(self, request: Request, *, repeat: float) -> bool:
        """Write it down; False: it was asked for less than `repeat` seconds ago."""
        ...

    def asked(self, waiting: float) -> Sequence[Request]:
        """Those that nobody has answered for so many seconds, the oldest first."""
        ...

    def answered(self, request: Request) -> None:
        """It is in the queue, or was refused for good."""
        ...


class Alerts(Protocol):
    """What a person has been told of, so that two workers, or the next minute, do not repeat it."""

    def alert_signs(self, scope: str) -> Signs:
        """What there is to see besides the mailouts that need a person."""
        ...

    def alerts_hold(self, keys: Sequence[str], seen_at: float) -> Sequence[Known]:
        """These hold, and no others, as was seen then; what is known of each.

        Whoever looked earlier and comes late neither ends nor revives what another has seen since.
        """
        ...

    def claim_alert(self, known: Known) -> bool:
        """Whether it is ours to tell: nobody has tried since. Until it is told, the try has failed."""
        ...

    def alert_told(self, key: str) -> None: ...


class Counts(Protocol):
    """What Prometheus is told. The counts only ever grow, whatever else is cleared away."""

    def add_counts(self, counts: Mapping[Sample, float]) -> None: ...
    def counts(self) -> Mapping[Sample, float]: ...
    def vitals(self, scope: str) -> Vitals:
        """How everything stands; `scope`: whose pace."""
        ...


class Archives(Protocol):
    """Old mailouts on their way out. Their rows in the queue stay: that they were sent is never forgotten."""

    def over_before(self, moment: float) -> Sequence[Mailout]:
        """Ended before then and not archived, the oldest first."""
        ...

    def claim_archive(self, id: str, *, owner: str, token: str, lease: float) -> bool:
        """Ours for so long, as it stands now. False: another's just now, or it is not over.

        An owner may take over his own: he knows that nobody else works in his name.
        """
        ...

    def keep_claim(self, id: str, token: str, lease: float) -> bool: ...
    def drop_claim(self, id: str, token: str) -> None: ...
    def transports(self, id: str) -> Mapping[str, str]:
        """What each of its sessions sent through."""
        ...

    def events_of(
        self, message_ids: Sequence[str], *, after: str = "", limit: int = 10_000
    ) -> Sequence[Mapping[str, Any]]:
        """By `id`, one page: ask again after the last one's."""
        ...

    def mark_archived(self, id: str, token: str, place: str) -> bool:
        """The archive is complete, and the truth from now on. False: the mailout changed meanwhile."""
        ...

    def archives_to_empty(self) -> Sequence[tuple[Mailout, str]]:
        """Archived mailouts whose messages have not all left the store, with the token of their archive."""
        ...

    def delete_archived_events(self, id: str, ids: Sequence[str]) -> int: ...
    def delete_archived_messages(self, id: str, *, most: int = 10_000) -> int:
        """The next part; 0: none is left."""
        ...

    def archive_emptied(self, id: str) -> None:
        """Nothing of it is left here but its row in the queue."""
        ...

    def trim_inbox(self, before: float, *, most: int = 10_000) -> int:
        """Forget the ids of events applied before then, a part of them; how many."""
        ...

    def give_space_back(self) -> int:
        """To the machine, if it is worth it and disturbs nobody; how many bytes."""
        ...
