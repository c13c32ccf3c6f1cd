"""The real engine over a real SQLite store on a virtual clock: days of sending in seconds of testing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.app.queue_run import QueueRun
from mailout.base.ids import mailout_id
from mailout.base.settings import load_settings
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.model import Content
from mailout.letters.content.port import Kind, Source
from mailout.outbox.delivery.port import Allowance
from mailout.outbox.queue.mailout import Mailout, NewMailout, Status
from mailout.store import Store
from tests.clocks import FakeClock
from tests.environment import SENDER
from tests.new_sqlite import open_new
from tests.unit.outbox.delivery.sending import ListTransport, MemoryJournals

MINUTE = 60.0


@dataclass(frozen=True)
class Quiet:
    """Without Prefect, and without the files that people read."""

    engine: Engine

    def begin(self, id: str) -> bool:
        self.engine.sending.freeze(id)
        return self.engine.sending.start(id).status is Status.PROCESSING

    def send(self, id: str, still_its_turn: Callable[[], bool]) -> bool:
        while self.send_time_slice(id):
            if not still_its_turn():
                return True
        return False

    def send_time_slice(self, id: str) -> bool:
        return self.engine.sending.send_time_slice(id)

    def end(self, id: str) -> None:
        return None


@dataclass
class QuotaTransport(ListTransport):
    """A provider that counts the last 24 hours."""

    max_24_hours: int = 10**9
    sent_at: list[float] = field(default_factory=list)

    def send(self, mails: Any) -> Any:
        self.sent_at.extend(self.clock.now() for _ in mails)
        return super().send(mails)

    def allowance(self) -> Allowance:  # type: ignore[override]
        lately = sum(1 for moment in self.sent_at if moment > self.clock.now() - 86_400)
        return Allowance(max(0, self.max_24_hours - lately), None)


@dataclass
class Drive:
    """A store, a clock and an engine; `run` is what the schedule does every minute."""

    engine: Engine
    clock: FakeClock
    store: Any  # a SqliteStore, or the one that was handed in
    transport: ListTransport
    journals: MemoryJournals

    def add(self, ref: str, people: int, **fields: Any) -> str:
        """A mailout to its own list of so many people."""
        emails = [f"{ref}-{index:05}@example.org" for index in range(people)]
        self.store.import_subscribers([SubscriberRow(email, email, lists=(ref,)) for email in emails])
        id = mailout_id(ref)
        content = Content(ref, f"<p>{ref}</p>", ref)
        self.store.enqueue(
            NewMailout(id=id, kind=Kind.MARKDOWN, ref=ref, list_key=fields.pop("list_key", ref), **fields)
        )
        self.store.set_content(id, keep_content(self.store, content), ref)
        self.engine.sending.freeze(id)
        return id

    def run(self) -> QueueRun:
        run = QueueRun(self.engine.sending, Quiet(self.engine))
        run.run()
        return run

    def run_to_the_end(self, id: str) -> Mailout:
        """Every minute in which something may be due, until it is done."""
        for _ in range(10_000):
            self.run()
            mailout = self.store.mailout(id)
            if mailout.status not in (Status.PENDING, Status.PROCESSING):
                return mailout
            until = max(mailout.deferred_until or 0.0, mailout.scheduled_at or 0.0)
            self.clock.sleep(max(MINUTE - self.clock.now() % MINUTE, until - self.clock.now()))
        raise AssertionError(f"{id} never ends")


def drive(
    folder: Path,
    clock: FakeClock | None = None,
    make_transport: Callable[[FakeClock], ListTransport] = ListTransport,
    worker: str = "test",
    store: Store | None = None,
    source_of: Callable[[str], Source] | None = None,
    **settings: str,
) -> Drive:
    clock = clock or FakeClock()
    env = {
        "MAILOUT_HOME": str(folder),
        **SENDER,
        **settings,
    }
    store = store or open_new(folder / "mailout.db", clock)
    transport, journals = make_transport(clock), MemoryJournals()
    engine = wiring.build(
        load_settings(env=env),
        clock,
        store=store,
        transport=transport,
        journals=journals,
        source_of=source_of,
        worker=worker,
        inline=True,  # a call moves the virtual clock
    )
    return Drive(engine, clock, store, transport, journals)
