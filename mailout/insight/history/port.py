"""What the dashboard needs of the store beyond the other rooms: by index, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mailout.letters.content.port import Kind
from mailout.outbox.queue.mailout import Mailout, Status

LISTED = "list:"
"""Before a list's name among the counts of people."""
EVENTS_COME_FOR = 14 * 86_400.0
"""How long after its end a mailout's counts are kept over time: what comes later is rare."""
REFUSALS_KEPT = 100
"""Kinds of refusals, the latest: strangers choose some of the words."""


@dataclass(frozen=True, slots=True)
class Act:
    """Something that a person did on the dashboard."""

    who: str  # the role, and the address it came from
    what: str
    about: str = ""  # a mailout's id, a person's address as a hash, a file's name
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class WrittenPage:
    """A page in Notion that is a draft or asks to be sent."""

    ref: str
    subject: str
    status: str  # in the database's own words
    is_ready: bool
    is_test: bool = False
    list_key: str | None = None
    send_at: float | None = None
    edited_at: float | None = None


@dataclass(frozen=True, slots=True)
class WrittenPages:
    """The pages as they were read at that moment, the last edited first."""

    read_at: float
    pages: Sequence[WrittenPage]


@dataclass(frozen=True, slots=True)
class Refusal:
    """What was refused for the same reason, counted."""

    path: str
    why: str
    n: int
    first_at: float
    last_at: float


class History(Protocol):
    def letters(
        self,
        *,
        modes: Sequence[str],
        statuses: Sequence[Status] = (),
        kind: Kind | None = None,
        before: tuple[float, str] | None = None,
        limit: int = 50,
    ) -> Sequence[Mailout]:
        """The newest first, of these modes (`real`, `rehearsal`, `test`) and one kind or all, one page: ask
        again before the last one's (created_at, id)."""
        ...

    def messages_to(self, email_norm: str, *, limit: int = 50) -> Sequence[Mapping[str, Any]]:
        """What one person got or will get of mailouts, the newest mailout first, with its subject."""
        ...

    def single_mails_to(self, email_norm: str, *, limit: int = 50) -> Sequence[Mapping[str, Any]]:
        """What one person got or will get without a mailout, the newest first, with its subject."""
        ...

    def notification_states(self, *, rehearsal: bool, latest: int = 10_000) -> Mapping[str, int]:
        """How many of the latest notifications are in which state; `REQUEUED` have no message yet."""
        ...

    def latest_notifications(self, *, rehearsal: bool, limit: int = 50) -> Sequence[Mapping[str, Any]]:
        """Messages of notifications, the last one that was noted first, with subject and `requeues`."""
        ...

    def sent_over_time(self, mailout_id: str, points: int = 60) -> Sequence[tuple[float, int]]:
        """(moment, about how many had left by then), at evenly spaced places of the outbox: as quick for a
        million messages as for a hundred."""
        ...

    def keep_counts(self, day: str) -> None:
        """Write down how many people there are today, and how each recent mailout stands now."""
        ...

    def people_over_time(self, since: str) -> Sequence[tuple[str, Mapping[str, int]]]:
        """(day, counts by status and list) from that day on, the oldest first."""
        ...

    def mailout_over_time(self, mailout_id: str) -> Sequence[tuple[float, Mapping[str, int]]]: ...
    def write_act(self, act: Act) -> None: ...
    def acts(self, limit: int = 100) -> Sequence[Act]:
        """The latest first."""
        ...

    def end_login(self, id: str, ends_at: float) -> None:
        """Somebody signed out of the dashboard: until then the session with this id counts no more."""
        ...

    def login_ended(self, id: str) -> bool: ...
    def requeue_dead_letter(self, id: str) -> bool:
        """Back into the inbox, to be read again; False: it is not there, or it is not an SES event."""
        ...


class Noticed(Protocol):
    """What was noticed on the way: pages in Notion, refused requests, Prefect's runs."""

    def keep_written_pages(self, pages: Sequence[WrittenPage]) -> None:
        """These and no others, as of now."""
        ...

    def written_pages(self) -> WrittenPages | None:
        """None: they were never read."""
        ...

    def keep_refusals(self, counts: Mapping[tuple[str, str], int]) -> None:
        """How many more there were, by (path, why); the latest `REFUSALS_KEPT` kinds stay."""
        ...

    def refusals(self, limit: int = 50) -> Sequence[Refusal]:
        """The latest first."""
        ...

    def keep_run(self, mailout_id: str, run_id: str) -> None:
        """Which of Prefect's flow runs sends it; the last one is kept."""
        ...

    def run_of(self, mailout_id: str) -> str | None: ...
