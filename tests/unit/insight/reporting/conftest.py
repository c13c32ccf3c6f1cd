from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mailout.adapters.sqlite import SqliteStore
from mailout.base.ids import mailout_id
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.model import Content
from mailout.letters.content.port import Kind
from mailout.outbox.delivery.protocol import Claimed, Pace, Result, Step
from mailout.outbox.delivery.states import State
from mailout.outbox.queue.mailout import Mailout, NewMailout
from mailout.outbox.queue.port import Recipient
from tests.new_sqlite import open_new

START = 1_794_733_200.0  # 15 Nov 2026 09:00 UTC


class SetClock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.moment = START

    def now(self) -> float:
        return self.moment

    def monotonic(self) -> float:
        return self.moment

    def sleep(self, seconds: float) -> None:
        self.moment += seconds


class Office:
    """A real store and a sender's part in it, one step at a time."""

    def __init__(self, store: SqliteStore, clock: SetClock) -> None:
        self.store = store
        self.clock = clock

    def mailout(
        self,
        emails: Sequence[str],
        *,
        ref: str = "letter.md",
        subject: str = "News of November",
        is_test: bool = True,
    ) -> Mailout:
        """Frozen and started. A test run: nobody has to be a subscriber."""
        id = mailout_id(ref)
        self.store.enqueue(NewMailout(id=id, kind=Kind.MARKDOWN, ref=ref, is_test=is_test))
        content = Content(subject, "<p>Hello</p>", "Hello")
        self.store.set_content(id, keep_content(self.store, content), subject)
        self.store.freeze_recipients(id, [Recipient(email) for email in emails])
        return self.store.start(id, "worker")

    def send(self, id: str, endings: Mapping[str, Result | State] | None = None, *, batch: int = 50) -> None:
        """Everything that is due, a batch a second; who is not named in `endings` is sent."""
        session = self.store.open_session(id, worker="worker", transport="folder", lease=1e9)
        n, results = 0, list[Any]()
        while True:
            n += 1
            step = Step(session, n, 1e9, Pace("folder", 0), results=results, want=batch)
            rows = self.store.step(step).rows
            if not rows:
                return
            self.clock.sleep(1)
            results = [ending_of(row, (endings or {}).get(row.email, State.SENT)) for row in rows]


def ending_of(row: Claimed, ending: Result | State) -> Result:
    if isinstance(ending, Result):
        return Result(row.attempt, ending.state, code=ending.code, message=ending.message)
    accepted, later = ending is State.SENT, ending is State.RETRY_SCHEDULED
    return Result(
        row.attempt,
        ending,
        provider_message_id=f"id-{row.seq}" if accepted else None,
        retry_in=3600.0 if later else None,
    )


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def office(tmp_path: Path, clock: SetClock) -> Iterator[Office]:
    store = open_new(tmp_path / "mailout.db", clock)
    yield Office(store, clock)
    store.close()
