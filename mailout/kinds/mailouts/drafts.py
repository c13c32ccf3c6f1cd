"""A letter that is written and not sent yet, as somebody sees it who is about to send it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mailout.letters.content.model import Content
from mailout.outbox.queue.mailout import Mailout


@dataclass(frozen=True, slots=True)
class Draft:
    """A page or file as it would be sent now."""

    list_key: str | None
    segment: str | None
    from_name: str | None
    content: Content | None  # None: it cannot be rendered; `stops` says why
    stops: Sequence[str]  # why it would not be sent
    findings: Sequence[str]  # what its author should look at
    read_at: float


class DraftReader(Protocol):
    """Reads them where they are written. SourceError: it cannot be read now."""

    def read(self, ref: str, *, again: bool = False) -> Draft:
        """As it is written now, or was a few seconds ago; `again`: now."""

    def look(self) -> None:
        """Find out which pages are drafts, Ready or failed, now."""

    def taken_back(self, ref: str) -> None:
        """Its page no longer says until when it waits."""

    def was_edited(self, mailout: Mailout) -> bool:
        """Whether its page or file was changed after some people got it; False where nobody can tell."""
