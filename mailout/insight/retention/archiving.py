"""Retention: mailouts that have long been over leave the store for an archive.

The order is what makes it safe. The archive is written where nobody looks, read back, and held against the
ledger; then the store says in one commit that it is the truth (and only if the mailout has not changed since
it was read: of two machines the first wins); then it gets its name; only then are messages deleted, in parts.
Killed anywhere and run again, it begins again before that commit and goes on after it. The mailout's row in
the queue and its contents stay for good: a page that was sent stays sent.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from mailout.base.errors import NotFound, StoreUnavailable, UsageError
from mailout.base.select import Reads, View, every
from mailout.insight.reporting.phrases import count
from mailout.insight.retention.port import ArchiveStore
from mailout.outbox.delivery.outbox_rows import SESSIONS, message_pages
from mailout.outbox.feedback.feedback_rows import DELIVERY_EVENTS
from mailout.outbox.queue.mailout import Mailout, Status
from mailout.outbox.queue.port import Queue
from mailout.outbox.queue.queue_rows import MAILOUTS

if TYPE_CHECKING:
    from mailout.insight.retention.archive_file import ArchiveFolder

log = logging.getLogger("mailout.archive")

DAY = 86_400.0
DEFAULT_DAYS = 90
LEAST_DAYS = 30
"""So long bounces and complaints still come in and are shown on the page; the same content is held back for
7 days; SQS repeats an event for up to 14."""
CHUNK = 25_000
"""How much one transaction deletes, in half a second. Smaller parts write the same index pages more often."""
CHANGED = "it changed while it was being read; the next run takes it"


class _Archive(TypedDict):
    id: str
    archived_at: float


ARCHIVES_TO_EMPTY = View("read_archives_to_empty", _Archive, ("id",))


@dataclass(frozen=True, slots=True)
class Archived:
    mailout: Mailout
    place: str
    messages: int
    events: int
    size: int


@dataclass(frozen=True, slots=True)
class Kept:
    """It stays in the store, for a reason that a person can read."""

    mailout: Mailout
    why: str
    trouble: bool = False  # it should not be so


@dataclass(frozen=True, slots=True, repr=False)
class Archiving:
    """`report` sees to it that a mailout's report files exist: they cannot be made without its messages."""

    store: ArchiveStore
    folder: ArchiveFolder
    report: Callable[[str], object]
    waits_for_page: Callable[[], set[str]]

    def plan(self, days: float) -> tuple[list[Mailout], list[Kept]]:
        """What `run` would archive, and what it would leave and why. Changes nothing."""
        if days < LEAST_DAYS:
            raise UsageError(
                f"A mailout stays in the store for {LEAST_DAYS} days at least:"
                " so long its bounces are counted and its rates are shown.",
                remedy=f"Say --older-than {LEAST_DAYS} or more.",
            )
        waits = self.waits_for_page()
        old = over_before(self.store, self.store.now() - days * DAY)
        reasons = [(mailout, why_not(mailout, waits)) for mailout in old]
        return (
            [mailout for mailout, why in reasons if why is None],
            [Kept(mailout, why) for mailout, why in reasons if why is not None],
        )

    def run(self, days: float) -> Iterator[Archived | Kept]:
        """Archive what is old and over, one mailout after the other; before that, end what was begun."""
        ready, kept = self.plan(days)
        with self.folder.alone():
            self.folder.clear_up(self._place_of)
            for mailout in archives_to_empty(self.store):
                yield self._empty(mailout)
            yield from kept
            for mailout in ready:
                yield self._archive(mailout)
            while self.store.trim_inbox(self.store.now() - days * DAY, most=CHUNK):
                pass

    def give_space_back(self) -> int:
        """How many bytes of the disk are free again. Being disturbed costs the space, never the archive."""
        try:
            return self.store.give_space_back()
        except StoreUnavailable as error:
            log.warning("the store's file stays as large as it is: %s", error)
            return 0

    # ── one mailout ──

    def _archive(self, mailout: Mailout) -> Archived | Kept:
        id = mailout.id
        as_it_was = self.store.archive_state(id)
        if as_it_was is None:
            return Kept(mailout, CHANGED)
        self.report(id)
        ledger = self.store.mailout(id).ledger
        place, counts = self.folder.write(id, self._messages(id))
        if counts.ledger != ledger:
            self.folder.clear_up(self._place_of)
            there, found = count(ledger.recipients, "message"), f"{counts.ledger.recipients:,}"
            return Kept(mailout, f"its ledger counts {there}, the store has {found}", trouble=True)
        # From here on the archive may be the truth: it is thrown away on the store's word alone.
        marked = self.store.mark_archived(id, as_it_was, place)
        self.folder.clear_up(self._place_of)
        return self._empty(self.store.mailout(id)) if marked else Kept(mailout, CHANGED)

    def _messages(self, id: str) -> Iterator[Sequence[Mapping[str, object]]]:
        """All of them with what they were sent through and what came back, a page at a time."""
        transports = {row["id"]: row["transport"] for row in every(self.store, SESSIONS, {"campaign_id": id})}
        for page in message_pages(self.store, id):
            events = defaultdict(list)
            for event in every(self.store, DELIVERY_EVENTS, {"message_id in": [row["id"] for row in page]}):
                events[event["message_id"]].append(event)
            yield [
                {**row, "transport": transports.get(row["session_id"] or ""), "events": events[row["id"]]}
                for row in page
            ]

    def _place_of(self, id: str) -> str | None:
        try:
            return self.store.mailout(id).archived_to
        except NotFound:
            return None

    def _empty(self, mailout: Mailout) -> Archived | Kept:
        """Delete what the archive holds. Events by their ids: one that came later is not in it, and stays."""
        place = mailout.archived_to or ""
        counts = self.folder.counts(place)
        if counts is None:
            why = f"its archive is not here: run this where {place} is, to free the store"
            return Kept(mailout, why, trouble=True)
        if counts.ledger != mailout.ledger:
            found, whole = counts.ledger.recipients, count(mailout.ledger.recipients, "message")
            why = f"its archive {place} is damaged ({found:,} of {whole}): nothing more is deleted"
            return Kept(mailout, why, trouble=True)
        for ids in self.folder.event_ids(place):
            for start in range(0, len(ids), CHUNK):
                self.store.delete_archived_events(mailout.id, ids[start : start + CHUNK])
        while self.store.delete_archived_messages(mailout.id, most=CHUNK):
            pass
        return Archived(mailout, place, counts.ledger.recipients, counts.events, counts.size)


def why_not(mailout: Mailout, waits_for_page: set[str]) -> str | None:
    """Why a mailout that has ended cannot leave the store yet; None: it can."""
    ledger = mailout.ledger
    if ledger.unknown:
        return f"{count(ledger.unknown, 'message')} in doubt: settle them first (mailout queue settle)"
    if ledger.pending + ledger.in_flight:
        return f"{count(ledger.pending + ledger.in_flight, 'message')} still on the way"
    if mailout.id in waits_for_page:
        return "its Notion page does not show yet how it ended"
    return None


def over_before(store: Reads, moment: float) -> Sequence[Mailout]:
    """Ended before then and not archived, the oldest first."""
    over = {"status in": [Status.COMPLETED, Status.CANCELLED], "archived_at": None, "completed_at <": moment}
    return list(every(store, MAILOUTS, over, order=["completed_at"]))


def archives_to_empty(store: Queue) -> Sequence[Mailout]:
    """Archived mailouts with messages that are still in the store."""
    found = sorted(every(store, ARCHIVES_TO_EMPTY), key=lambda one: one["archived_at"])
    return [store.mailout(one["id"]) for one in found]
