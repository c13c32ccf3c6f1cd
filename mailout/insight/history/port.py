"""What the dashboard needs of the store beyond the other rooms: by index, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import Protocol

from mailout.base.select import Writes
from mailout.outbox.delivery.port import Message

LISTED = "list:"
"""Before a list's name among the counts of people."""
EVENTS_COME_FOR = 14 * 86_400.0
"""How long after its end a mailout's counts are kept over time: what comes later is rare."""
NOTIFICATIONS_COUNTED = 10_000
"""So many of the latest are in `read_notification_states`."""
WRITTEN_PAGES, PAUSED_PAGES, JOURNAL_FOLDER = "written_pages", "paused_pages", "journal_folder"
"""The names of the notes that hold them."""
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
    is_failed: bool = False  # it was refused, or its sending failed


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
    last_at: float


class MailoutMessage(Message):
    """A message of a mailout, with what is said of the mailout."""

    subject: str
    is_test: bool


class History(Writes, Protocol):
    """What the dashboard shows of the past, and what was noticed on the way: pages in Notion, refused
    requests, Prefect's runs."""

    def sent_over_time(self, mailout_id: str, points: int = 60) -> Sequence[tuple[float, int]]:
        """(moment, about how many were sent by then), at evenly spaced places of the outbox: as quick for a
        million messages as for a hundred."""

    def keep_counts(self, day: str) -> None:
        """Write down how many people there are today, and how each recent mailout stands now."""

    def end_login(self, id: str, ends_at: float) -> bool:
        """A session that was signed out of, or a link to sign in that was used: until then the one with this
        id counts no more. False: it had ended before; of several at once one is told True."""

    def keep_refusals(self, counts: Mapping[tuple[str, str], int]) -> None:
        """How many more there were, by (path, why); the latest `REFUSALS_KEPT` kinds stay."""


def days_ago(now: float, zone: tzinfo, days: int) -> str:
    return (day_of(now, zone) - timedelta(days=days)).isoformat()


def day_of(moment: float, zone: tzinfo) -> date:
    return datetime.fromtimestamp(moment, zone).date()


def spread(moments: Sequence[float], sent: int) -> Sequence[tuple[float, int]]:
    """What samples of the messages say of all: the nth of k was sent when about n/k of all were."""
    ordered = sorted(moments)
    return [(at, round(sent * n / len(ordered))) for n, at in enumerate(ordered, start=1)]
