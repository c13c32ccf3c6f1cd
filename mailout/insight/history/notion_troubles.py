"""What keeps letters in Notion waiting: one note in the store, for alerts, `status` and the dashboard."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class NotionTrouble:
    kind: str  # READING, WRITING, PAGE or ASKED
    why: str
    since: float
    passes: bool  # perhaps by itself
    page: str = ""
    title: str = ""  # the page's, where it is known

    @property
    def what(self) -> str:
        return f"“{self.title}” waits" if self.title else self.kind.format(self.page)


def keep(store: Writes, kind: str, found: Mapping[str, MailoutError]) -> None:
    """Of this kind there are these now, by page (one of Notion as a whole has none), and no others."""
    before = _kept(store)
    since, now = {(one.kind, one.page): one.since for one in before}, store.now()
    new = []
    for page, error in found.items():
        passes = isinstance(error, SourceUnavailable)
        why = error.message if passes else str(error)  # nobody has to try again
        new.append(NotionTrouble(kind, why, since.get((kind, page), now), passes, page))
    kept = [*(one for one in before if one.kind != kind), *new]
    if kept != before:
        keep_note(store, NOTION_TROUBLES, [asdict(one) for one in kept])


def forget(store: Writes) -> None:
    """Notion is not used any more; what was asked for may be a file."""
    for kind in (READING, WRITING, PAGE):
        keep(store, kind, {})


def lasting(store: Reads) -> Sequence[NotionTrouble]:
    """Those that somebody should know of; of a page that is Ready and was asked for, too, one."""
    now = store.now()
    found = [one for one in _kept(store) if not one.passes or now - one.since >= PASSING_SECONDS]
    ready = {one.page for one in found if one.kind == PAGE}
    read = written_pages(store) if any(one.page for one in found) else None
    titles = {page.ref: plain_subject(page.subject) for page in (read.pages if read else ())}
    return [
        replace(one, title=titles.get(one.page, ""))
        for one in found
        if one.kind != ASKED or one.page not in ready
    ]


def _kept(store: Reads) -> list[NotionTrouble]:
    return [NotionTrouble(**one) for one in note_value(store, NOTION_TROUBLES)]
