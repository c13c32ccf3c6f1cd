"""Retention: mailouts that have long been over leave the store for an archive.

The order is what makes it safe. The archive is written where nobody looks, read back, and held against the
ledger; then the store says in one commit that it is the truth (and only if the mailout has not changed since
it was claimed); then it gets its name; only then are messages deleted, in parts. Killed anywhere and run
again, it begins again before that commit and goes on after it. The mailout's row in the queue stays for good:
a page that was sent stays sent.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from mailout.base.errors import StoreUnavailable, UsageError
from mailout.insight.reporting.phrases import count
from mailout.insight.retention import archive_rows
from mailout.insight.retention.port import ArchiveFolder, ArchiveStore, Draft
from mailout.letters.content import content_rows
from mailout.outbox.delivery.outbox_rows import message_pages
from mailout.outbox.queue.mailout import Mailout

log = logging.getLogger("mailout.archive")

DAY = 86_400.0
DEFAULT_DAYS = 90
LEAST_DAYS = 30
"""So long bounces and complaints still come in and are shown on the page; the same content is held back for
7 days; SQS repeats an event for up to 14."""
LEASE = 600.0
CHUNK = 25_000
"""How much one transaction deletes, in half a second. Smaller parts write the same index pages more often."""
CHANGED = "it changed while it was being read; the next run takes it"


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
        ready: list[Mailout] = []
        kept: list[Kept] = []
        for mailout in archive_rows.over_before(self.store, self.store.now() - days * DAY):
            why = why_not(mailout, waits)
            if why is None:
                ready.append(mailout)
            else:
                kept.append(Kept(mailout, why))
        return ready, kept

    def run(self, days: float) -> Iterator[Archived | Kept]:
        """Archive what is old and over, one mailout after the other; before that, end what was begun."""
        ready, kept = self.plan(days)
        with self.folder.alone():
            begun = archive_rows.archives_to_empty(self.store)
            for mailout, token in begun:
                yield self._empty(mailout, token)
            self.folder.clear_up({token for _, token in begun})
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
        id, token = mailout.id, uuid.uuid4().hex
        if not self.store.claim_archive(id, owner=self.folder.owner, token=token, lease=LEASE):
            return Kept(mailout, "another machine is archiving it just now, or it has changed")
        try:
            stays = self._write(self.store.mailout(id), token)
        except BaseException:
            self._give_up(id, token)
            raise
        # From here on the draft may be the truth: it is thrown away on the store's word alone.
        if stays is None and self.store.mark_archived(id, token, self.folder.place_for(id)):
            return self._empty(self.store.mailout(id), token)
        self._give_up(id, token)
        return stays or Kept(mailout, CHANGED)

    def _give_up(self, id: str, token: str) -> None:
        self.folder.discard(id, token)
        self.store.drop_claim(id, token)

    def _write(self, mailout: Mailout, token: str) -> Kept | None:
        """The whole archive, on the disk and checked; or why it cannot be."""
        self.report(mailout.id)
        draft = self.folder.draft(mailout.id, token)
        if not self._fill(draft, mailout, token):
            return Kept(mailout, CHANGED)
        tally = draft.seal({**_columns(mailout), "archive": token, "store": self.store.name})
        if tally.agrees_with(mailout.ledger):
            return None
        there, found = count(mailout.ledger.recipients, "message"), f"{tally.messages:,}"
        return Kept(mailout, f"its ledger counts {there}, the store has {found}", trouble=True)

    def _fill(self, draft: Draft, mailout: Mailout, token: str) -> bool:
        """False: it is no longer ours."""
        transports = archive_rows.transports(self.store, mailout.id)
        contents = {mailout.content_hash}
        for page in message_pages(self.store, mailout.id):
            draft.add(
                "messages", [{**row, "transport": transports.get(row["session_id"] or "")} for row in page]
            )
            contents.update(row["content_id"] for row in page)
            draft.add("events", list(archive_rows.events_of(self.store, [row["id"] for row in page])))
            if not self.store.keep_claim(mailout.id, token, LEASE):
                return False
        for hash in sorted(filter(None, contents)):
            content = content_rows.content(self.store, hash)
            row = {"hash": hash, "subject": content.subject, "html": content.html, "text": content.text}
            draft.add("contents", [row])
        return True

    def _empty(self, mailout: Mailout, token: str) -> Archived | Kept:
        """Delete what the archive holds. Events by their ids: one that came later is not in it, and stays."""
        place = mailout.archived_to or ""
        self.folder.put_in_place(mailout.id, token, place)
        tally = self.folder.tally(place, token)
        if tally is None:
            why = f"its archive is not here: run this where {place} is, to free the store"
            return Kept(mailout, why, trouble=True)
        if not tally.agrees_with(mailout.ledger):
            whole = count(mailout.ledger.recipients, "message")
            why = f"its archive {place} is damaged ({tally.messages:,} of {whole}): nothing more is deleted"
            return Kept(mailout, why, trouble=True)
        for ids in self.folder.event_ids(place):
            for start in range(0, len(ids), CHUNK):
                self.store.delete_archived_events(mailout.id, ids[start : start + CHUNK])
        while self.store.delete_archived_messages(mailout.id, most=CHUNK):
            pass
        return Archived(mailout, place, tally.messages, tally.events, tally.size)


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


def _columns(mailout: Mailout) -> dict[str, Any]:
    """The row of the queue, flat."""
    values = asdict(mailout)
    return {**values, **values.pop("ledger")}
