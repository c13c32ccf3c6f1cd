"""A sender on a virtual clock over a real SQLite store: everything but the waiting is real."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mailout.adapters.sqlite import SqliteStore
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.model import Content
from mailout.letters.content.port import Kind
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.options import SenderOptions
from mailout.outbox.delivery.port import DeadJournal, Mail
from mailout.outbox.delivery.protocol import Attempt, Bucket, Claimed, Outcome, OutcomeKind, Timing
from mailout.outbox.delivery.sender import Sender
from mailout.outbox.delivery.throttling import Throttling
from mailout.outbox.queue.mailout import NewMailout
from tests.clocks import FakeClock
from tests.new_sqlite import open_new

CONTENT = Content("Hello", "<p>Hello</p>", "Hello")
MAILOUT = "11111111-1111-8111-8111-111111111111"
BUCKETS = (Bucket("hour", "h", 0, 1e12), Bucket("day", "d", 0, 1e12))


@dataclass
class ListTransport:
    """Accepts into a list, answers by script, and takes its time on the virtual clock."""

    clock: FakeClock
    latency: float = 0.0
    answer: Callable[[Mail, int], Outcome | None] = lambda mail, nth: None
    name: str = "list"
    scope: str = "list"
    max_batch: int = 1
    starts: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    accepted: Counter[str] = field(default_factory=Counter)
    calls: int = 0

    def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]:
        self.starts.append(self.clock.monotonic())
        self.sizes.append(len(mails))
        self.clock.sleep(self.latency)
        return [self._one(mail) for mail in mails]

    def _one(self, mail: Mail) -> Outcome:
        self.calls += 1
        scripted = self.answer(mail, self.calls)
        if scripted is not None and scripted.kind is not OutcomeKind.SENT:
            return scripted
        self.accepted[mail.to] += 1
        return scripted or Outcome(
            OutcomeKind.SENT, provider_message_id=f"m-{mail.attempt.id}-{mail.attempt.epoch}"
        )

    def allowance(self) -> None:
        return None

    def close(self) -> None:
        return None


class MemoryJournal:
    """Keeps what `FileJournal` would have on disk when its process dies."""

    def __init__(self) -> None:
        self.called: set[Attempt] = set()
        self.accepted: dict[Attempt, str] = {}
        self.voided: set[Attempt] = set()
        self.closed: int | None = None

    def call(self, attempts: Sequence[Attempt]) -> None:
        self.called.update(attempts)

    def answered(self, accepted: Mapping[Attempt, str], void: Sequence[Attempt]) -> None:
        self.accepted.update(accepted)
        self.voided.update(void)

    def close(self, last_step: int) -> None:
        self.closed = last_step

    def abandon(self) -> None:
        return None


class MemoryJournals:
    """Journals of one machine; `die` makes all open ones a dead process's."""

    def __init__(self) -> None:
        self.journals: dict[str, MemoryJournal] = {}
        self._dead: set[str] = set()

    def open(self, session: str) -> MemoryJournal:
        return self.journals.setdefault(session, MemoryJournal())

    def die(self) -> None:
        self._dead = set(self.journals)

    @contextmanager
    def dead(self) -> Any:
        yield [journal for journal in self.look() if journal.session in self._dead]

    def look(self) -> list[DeadJournal]:
        return [
            DeadJournal(
                session,
                frozenset(journal.called),
                journal.accepted,
                frozenset(journal.voided),
                journal.closed,
            )
            for session, journal in self.journals.items()
        ]

    def forget(self, session: str, last_step: int) -> None:
        self.journals[session].close(last_step)
        self._dead.discard(session)


@dataclass
class Scene:
    """A mailout of so many recipients, frozen and started, and what it takes to send it."""

    store: SqliteStore
    clock: FakeClock
    transport: ListTransport
    journals: MemoryJournals
    people: Sequence[str]

    def sender(
        self,
        store: Any = None,
        throttling: Throttling | None = None,
        compose: Callable[[Claimed], Mail] | None = None,
        **options: Any,
    ) -> Sender:
        settings: Mapping[str, Any] = {
            "worker": "test",
            "rate": 0.0,
            "timing": Timing.of(120),
            "buckets": lambda now: BUCKETS,
            "inline": True,
            **options,
        }
        return Sender(
            store or self.store,
            self.transport,
            compose or mail_of,
            self.journals,
            self.clock,
            SenderOptions(**settings),
            throttling=throttling or Throttling(),
        )

    def states(self) -> Counter[str]:
        return Counter(row["state"] for row in outbox_rows.messages(self.store, MAILOUT, limit=1_000_000))


def mail_of(row: Claimed) -> Mail:
    return Mail(row.attempt, row.mailout_id, row.email, "news@example.org", "News", None, CONTENT, {}, None)


def scene(directory: Path, recipients: int, clock: FakeClock | None = None, **transport: Any) -> Scene:
    clock = clock or FakeClock()
    store = open_new(directory / "mailout.db", clock)
    people = [f"p{index:05}@example.org" for index in range(recipients)]
    store.import_subscribers([SubscriberRow(email, email) for email in people])
    keep_content(store, CONTENT)
    store.enqueue(NewMailout(id=MAILOUT, kind=Kind.MARKDOWN, ref="letter.md", subject="Hello"))
    store.set_content(MAILOUT, CONTENT.hash, "Hello")
    while store.freeze_subscribers(MAILOUT) is not None:
        continue
    store.start(MAILOUT, "test")
    return Scene(store, clock, ListTransport(clock, **transport), MemoryJournals(), people)
