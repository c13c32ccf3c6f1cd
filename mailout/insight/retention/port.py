"""What archiving needs: the store's old mailouts, and a folder for archives."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from mailout.base.select import Reads
from mailout.letters.content.port import Contents
from mailout.outbox.delivery.port import Outbox
from mailout.outbox.delivery.protocol import Ledger
from mailout.outbox.delivery.states import COLUMN_OF, Column, State
from mailout.outbox.queue.port import Queue


@dataclass(frozen=True, slots=True)
class Tally:
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

    def claim_archive(self, id: str, *, owner: str, token: str, lease: float) -> bool:
        """Ours for so long, as it stands now. False: another's just now, or it is not over.

        An owner may take over its own: it knows that nobody else works in its name.
        """
        ...

    def keep_claim(self, id: str, token: str, lease: float) -> bool: ...
    def drop_claim(self, id: str, token: str) -> None: ...
    def mark_archived(self, id: str, token: str, place: str) -> bool:
        """The archive is complete, and the truth from now on. False: the mailout changed meanwhile."""
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


Table = Literal["messages", "events", "contents"]


class Draft(Protocol):
    """An archive that is being written, where nobody looks."""

    def add(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None: ...
    def seal(self, mailout: Mapping[str, Any]) -> Tally:
        """On the disk for good, read back, and the same as what was added: else StoreError."""
        ...


class ArchiveFolder(Protocol):
    """Where archives lie."""

    owner: str  # in whose name mailouts are claimed

    def alone(self) -> AbstractContextManager[None]:
        """Nobody else archives in this owner's name meanwhile; UsageError: somebody does."""
        ...

    def clear_up(self, keep: Collection[str]) -> None:
        """Throw away this owner's drafts, but for those with these tokens: whoever wrote them was killed."""
        ...

    def draft(self, id: str, token: str) -> Draft: ...
    def discard(self, id: str, token: str) -> None: ...
    def place_for(self, id: str) -> str:
        """Where the next archive of it would lie, as the store is given it."""
        ...

    def put_in_place(self, id: str, token: str, place: str) -> None:
        """Give a sealed draft its name; nothing, if it has it already."""
        ...

    def tally(self, place: str, token: str) -> Tally | None:
        """What the archive with this token holds; None: it is not here."""
        ...

    def event_ids(self, place: str) -> Iterator[Sequence[str]]: ...


class ArchiveStore(Archives, Contents, Outbox, Queue, Protocol):
    """What leaves the store."""

    name: str
