"""A sender that dies in a call, over a real journal: what the contract tests of crashes play out."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mailout.adapters.journals.files import FileJournal, FileJournals
from mailout.outbox.delivery.options import RunReport, SenderOptions
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Bucket, Outcome, OutcomeKind, Step, StepReply, Timing
from mailout.outbox.delivery.sender import Sender
from mailout.store import Store
from tests.clocks import FakeClock
from tests.contract.scenes import mailout
from tests.unit.outbox.delivery.sending import mail_of

BUCKETS = (Bucket("hour", "h", 0, 1e12), Bucket("day", "d", 0, 1e12))


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Provider:
    """Takes what it is given, so many messages a call; its `dies_at`-th call kills whoever makes it."""

    max_batch: int = 1
    dies_at: int = 0
    accepted: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    name: str = "list"
    scope: str = "list"

    def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]:
        self.calls += 1
        self.accepted.update(mail.to for mail in mails)
        if self.calls == self.dies_at:
            raise Killed
        return [
            Outcome(OutcomeKind.SENT, provider_message_id=f"m {mail.attempt.id}\n{mail.to}") for mail in mails
        ]

    def allowance(self) -> None:
        return None

    def close(self) -> None:
        return None


class Machine(FileJournals):
    """The journals of one start of a machine; what is still open when it dies belongs to nobody."""

    def __init__(self, folder: Path, boot_id: str | None = None) -> None:
        super().__init__(folder, boot_id)
        self._opened: list[FileJournal] = []

    def open(self, session: str) -> FileJournal:
        self._opened.append(super().open(session))
        return self._opened[-1]

    def die(self) -> None:
        for journal in self._opened:
            journal.abandon()


class Mortal:
    """The store as a process sees it: after its death it says nothing more, not even goodbye."""

    def __init__(self, store: Store, provider: Provider) -> None:
        self._store, self._provider = store, provider

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def step(self, step: Step) -> StepReply:
        if self._provider.dies_at and self._provider.calls >= self._provider.dies_at:
            raise Killed
        return self._store.step(step)


def people(count: int) -> list[str]:
    return [f"p{number:03}@example.org" for number in range(count)]


def new_mailout(store: Store, count: int) -> str:
    return mailout(store, *people(count), ref=f"page-{uuid.uuid4()}")


def send(
    store: Any, provider: Any, journals: Any, id: str, seconds: float | None = None, **options: Any
) -> RunReport:
    """Until it is done, or for so long on its own clock: the store's stands still."""
    clock = FakeClock()
    chosen: dict[str, Any] = {"worker": "test", "rate": 0.0, "timing": Timing.of(120), "batch_size": 10}
    chosen |= {"buckets": lambda now: BUCKETS, "inline": True} | options
    deadline = None if seconds is None else clock.monotonic() + seconds
    sender = Sender(store, provider, mail_of, journals, clock, SenderOptions(**chosen))
    return sender.run(id, deadline=deadline)


def die_sending(store: Store, provider: Provider, journals: Machine, id: str) -> None:
    try:
        send(Mortal(store, provider), provider, journals, id)
    except Killed:
        journals.die()
    else:
        raise AssertionError("it was to die")
