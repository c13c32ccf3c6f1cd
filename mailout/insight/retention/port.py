"""What archiving needs of the store: its old mailouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mailout.outbox.delivery.port import Outbox
from mailout.outbox.queue.port import Queue


class ArchiveStore(Outbox, Queue, Protocol):
    """Old mailouts on their way out. Their rows in the queue stay: that they were sent is never forgotten."""

    def archive_state(self, id: str) -> str | None:
        """What changes with the mailout, and when anybody is forgotten. None: it is not over, or archived."""

    def mark_archived(self, id: str, as_it_was: str, place: str) -> bool:
        """The archive is complete, and the truth from now on. False: its `archive_state` is another."""

    def delete_archived_events(self, id: str, ids: Sequence[str]) -> int:
        """Not those by which three soft bounces in a row are counted: of addresses that had one."""

    def delete_archived_messages(self, id: str, *, most: int = 10_000) -> int:
        """The next part; 0: none is here any more, and nothing of it but its row in the queue."""

    def trim_inbox(self, before: float, *, most: int = 10_000) -> int:
        """Forget the ids of events applied before then, a part of them; how many."""

    def give_space_back(self) -> int:
        """To the machine, if it is worth it and disturbs nobody; how many bytes."""
