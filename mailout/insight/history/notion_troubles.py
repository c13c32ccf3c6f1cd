"""What keeps letters in Notion waiting: one note in the store, for alerts, `status` and the dashboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from mailout.base.errors import MailoutError, SourceUnavailable
from mailout.base.select import Reads, Writes
from mailout.insight.history.history_rows import keep_note, note_value

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

    @property
    def what(self) -> str:
        return self.kind.format(self.page)


def keep(store: Writes, kind: str, found: Mapping[str, MailoutError]) -> None:
    """Of this kind there are these now, by page (one of Notion as a whole has none), and no others."""
    before = _kept(store)
    since, now = {(one.kind, one.page): one.since for one in before}, store.now()
    new = [
        NotionTrouble(
            kind, str(error), since.get((kind, page), now), isinstance(error, SourceUnavailable), page
        )
        for page, error in found.items()
    ]
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
    return [one for one in found if one.kind != ASKED or one.page not in ready]


def _kept(store: Reads) -> list[NotionTrouble]:
    return [NotionTrouble(**one) for one in note_value(store, NOTION_TROUBLES)]
