"""What keeps letters in Notion waiting: one note in the store, for alerts, `status` and the dashboard."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from mailout.base.errors import MailoutError, SourceUnavailable
from mailout.base.select import Reads, Writes
from mailout.insight.history.history_rows import keep_note, note_value, written_pages
from mailout.letters.content.sample import plain_subject

NOTION_TROUBLES = "notion troubles"
"""Among the store's notes."""
READING, WRITING, PAGE = "Notion cannot be read", "Notion cannot be written", "The page {} waits"
ASKED = "What was asked for waits: {}"
"""Over HTTP or on the dashboard: also a file."""
PASSING_SECONDS = 600.0
"""What may pass by itself is told when it has lasted so long."""
SEEN_SECONDS, GONE_SECONDS = 300.0, 1800.0
"""How often it is written down that one is still there; and after how long without, its machine is gone."""


@dataclass(frozen=True, slots=True)
class NotionTrouble:
    kind: str  # READING, WRITING, PAGE or ASKED
    why: str
    since: float
    passes: bool  # perhaps by itself
    page: str = ""
    title: str = ""  # the page's, where it is known
    by: str = ""  # the machine that has it: another may have another token
    seen: float = 0.0

    @property
    def what(self) -> str:
        return f"“{self.title}” waits" if self.title else self.kind.format(self.page)


def keep(store: Writes, kind: str, found: Mapping[str, MailoutError]) -> None:
    """Of this kind this machine has these now, by page (one of Notion as a whole has none), and no others."""
    before, by, now = _kept(store), socket.gethostname(), store.now()
    since = {one.page: one.since for one in reversed(before) if one.kind == kind}
    mine = {one.page: one for one in before if one.kind == kind and one.by == by}
    new = []
    for page, error in found.items():
        passes = isinstance(error, SourceUnavailable)
        why = error.message if passes else str(error)  # nobody has to try again
        seen = mine[page].seen if page in mine and now - mine[page].seen < SEEN_SECONDS else now
        new.append(NotionTrouble(kind, why, since.get(page, now), passes, page, by=by, seen=seen))
    kept = [*(one for one in before if one.kind != kind or one.by != by), *new]
    if kept != before:
        keep_note(store, NOTION_TROUBLES, [asdict(one) for one in kept])


def forget(store: Writes) -> None:
    """Notion is not used any more; what was asked for may be a file."""
    for kind in (READING, WRITING, PAGE):
        keep(store, kind, {})


def lasting(store: Reads) -> Sequence[NotionTrouble]:
    """Those that somebody should know of, each once: two machines may have it, a page may be Ready and asked
    for."""
    now, found = store.now(), dict[str, NotionTrouble]()
    for one in _kept(store):
        if not one.passes or now - one.since >= PASSING_SECONDS:
            found.setdefault(one.page or one.kind, one)
    read = written_pages(store) if any(one.page for one in found.values()) else None
    titles = {page.ref: plain_subject(page.subject) for page in (read.pages if read else ())}
    return [replace(one, title=titles.get(one.page, "")) for one in found.values()]


def _kept(store: Reads) -> list[NotionTrouble]:
    found, now = (NotionTrouble(**one) for one in note_value(store, NOTION_TROUBLES)), store.now()
    return [one for one in found if now - one.seen < GONE_SECONDS]
