"""Letters that are asked for or planned and are not in the queue yet, by their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from gateway.dashboard.desk import Desk
from mailout.base.time_format import spoken
from mailout.insight.history import history_rows
from mailout.letters.content.sample import sample_subject
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.port import RequestKind


@dataclass(frozen=True, slots=True)
class PlannedLetter:
    ref: str
    subject: str
    said: str  # what happens with it, and when
    link: str


def planned_letters(desk: Desk) -> Sequence[PlannedLetter]:
    """Those that are being read, then those with a time, the soonest first."""
    store = desk.store
    asked, planned = queue_rows.asked(store, waiting=0), queue_rows.planned(store)
    read = history_rows.written_pages(store)
    pages = {page.ref: page for page in (read.pages if read else ())}
    unnamed = [one.ref for one in (*asked, *planned) if one.ref not in pages]
    letters = history_rows.latest_of(store, unnamed)

    def named(ref: str, said: str) -> PlannedLetter:
        known = pages.get(ref) or letters.get(ref)
        return PlannedLetter(
            ref, sample_subject(known.subject) if known else "A letter", said, draft_page(ref)
        )

    found = [
        named(
            one.ref, "was asked for as a test and is being read" if one.test else "is being read and starts"
        )
        if one.how is not RequestKind.ARTICLE
        else PlannedLetter("", "An article", "was asked for and is being put together", "/articles")
        for one in asked
    ]
    timed = [(one.not_before or 0.0, one.ref, "") for one in planned]
    now, chosen = store.now(), {one.ref for one in planned}
    timed += [
        (page.send_at, page.ref, " (Ready in Notion)")
        for page in pages.values()
        if page.is_ready and page.send_at and page.send_at > now and page.ref not in chosen
    ]
    return found + [named(ref, f"goes out {spoken(at, desk.zone)}{how}") for at, ref, how in sorted(timed)]


def draft_page(ref: str) -> str:
    return f"/draft?ref={quote(ref, safe='')}"
