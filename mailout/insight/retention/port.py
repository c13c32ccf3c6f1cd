"""What archiving needs: the store's old mailouts, and a folder for archives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from mailout.base.select import Reads
from mailout.outbox.delivery.port import Outbox
from mailout.outbox.delivery.protocol import Ledger
from mailout.outbox.delivery.states import COLUMN_OF, Column, State
from mailout.outbox.queue.port import Queue


@dataclass(frozen=True, slots=True)
class ArchiveCounts:
    """What an archive holds, counted in its files."""

    states: Mapping[str, int]
    events: int
    size: int  # bytes

    @property
    def messages(self) -> int:
        return sum(self.states.values())

    def agrees_with(self, ledger: Ledger) -> bool:
        counted = dict.fromkeys(Column, 0)
        for state, n in self.states.items():
            counted[COLUMN_OF[State(state)]] += n
        return self.messages == ledger.recipients and all(
            n == getattr(ledger, column.value) for column, n in counted.items()
        )


class Archives(Reads, Protocol):
    """Old mailouts on their way out. Their rows in the queue stay: that they were sent is never forgotten."""

    def archive_state(self, id: str) -> str | None:
        """What changes with the mailout, and when anybody is forgotten. None: it is not over, or archived."""
        ...

    def mark_archived(self, id: str, as_it_was: str, place: str) -> bool:
        """The archive is complete, and the truth from now on. False: its `archive_state` is another."""
        ...

    def delete_archived_events(self, id: str, ids: Sequence[str]) -> int: ...
    def delete_archived_messages(self, id: str, *, most: int = 10_000) -> int:
        """The next part; 0: none is here any more, and nothing of it but its row in the queue."""
        ...

    def trim_inbox(self, before: float, *, most: int = 10_000) -> int:
        """Forget the ids of events applied before then, a part of them; how many."""
        ...

    def give_space_back(self) -> int:
        """To the machine, if it is worth it and disturbs nobody; how many bytes."""
        ...


class ArchiveFolder(Protocol):
    """Where archives lie."""

    def alone(self) -> AbstractContextManager[None]:
        """Nobody else archives into this folder meanwhile; UsageError: somebody does."""
        ...

    def clear_up(self, place_of: Callable[[str], str | None]) -> None:
        """Whoever wrote what is still hidden was killed: it gets its name, or goes if it is not the truth.

        `place_of`: where the store says that a mailout's archive lies.
        """
        ...

    def write(self, id: str, pages: Iterable[Sequence[Mapping[str, Any]]]) -> tuple[str, ArchiveCounts]:
        """Messages with their events, hidden, on the disk for good and read back; where it will lie."""
        ...

    def discard(self, place: str) -> None:
        """What was written for this place and is still hidden."""
        ...

    def put_in_place(self, place: str) -> None:
        """Give it its name; nothing, if it has it already."""
        ...

    def tally(self, place: str) -> ArchiveCounts | None:
        """What the archive holds; None: it is not here."""
        ...

    def event_ids(self, place: str) -> Iterator[Sequence[str]]: ...


class ArchiveStore(Archives, Outbox, Queue, Protocol):
    """What leaves the store."""
