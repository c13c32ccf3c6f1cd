"""How SQLite finds what a sender asks for: by an index, however many messages there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mailout.adapters.sqlite import SqliteStore
from mailout.outbox.delivery.states import State
from tests.clocks import FakeClock
from tests.contract.scenes import GRACE, Sender, buckets, mailout, result

PEOPLE = [f"p{n}@example.org" for n in range(4)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "mailout.db", FakeClock())
    yield made
    made.close()


def walked_over(store: SqliteStore, work: Callable[[], object]) -> list[str]:
    """The statements that looked at every message there is."""
    said: list[str] = []
    connection = store.db._connection
    connection.set_trace_callback(said.append)
    work()
    connection.set_trace_callback(None)
    ours = [one for one in said if "email_outbox" in one and not one.startswith(("--", "INSERT"))]
    assert ours
    return [
        one
        for one in ours
        for step in connection.execute(f"EXPLAIN QUERY PLAN {one}")
        if step["detail"].startswith(("SCAN email_outbox", "SCAN o"))
    ]


def test_a_sender_never_walks_over_the_whole_outbox(store: SqliteStore) -> None:
    """At the end of every stretch half a million messages would keep everybody waiting for three seconds."""
    sender = Sender(store, mailout(store, *PEOPLE))

    def work() -> None:
        first, second = sender.step(want=2, buckets=buckets(store.now())).rows
        sender.step(results=[result(first.attempt, State.SENT)], withdraw=[second.attempt])
        sender.step(want=2, recover=True)
        sender.step(close=True)

    assert walked_over(store, work) == []


def test_nor_does_whoever_gives_up_a_lost_sender(store: SqliteStore) -> None:
    sender = Sender(store, mailout(store, *PEOPLE))
    sender.step(want=2)
    assert isinstance(store.db.clock, FakeClock)
    store.db.clock.wall += 1_000
    assert walked_over(store, lambda: store.reap(GRACE)) == []


def plans(store: SqliteStore, work: Callable[[], object], table: str) -> str:
    """How the statements that name this table find their rows."""
    said: list[str] = []
    connection = store.db._connection
    connection.set_trace_callback(said.append)
    work()
    connection.set_trace_callback(None)
    steps = [connection.execute(f"EXPLAIN QUERY PLAN {one}").fetchall() for one in said if table in one]
    return "; ".join(step["detail"] for found in steps for step in found)


def test_the_dashboard_finds_failures_and_people_who_left_by_an_index(store: SqliteStore) -> None:
    """Among a million messages or people a page would take seconds."""
    id = mailout(store, *PEOPLE)
    for states in ([State.UNKNOWN], [State.FAILED, State.VALIDATION_FAILED]):
        found = plans(store, lambda states=states: store.messages(id, states=states), "email_outbox")  # type: ignore[misc]
        assert "email_outbox_failed" in found
    assert "subscribers_gone" in plans(store, lambda: store.subscribers(status="bounced"), "subscribers")
    assert "email_outbox_single_to" in plans(store, lambda: store.single_mails_to(PEOPLE[0]), "email_outbox")
    assert "campaign_queue_created" in plans(store, lambda: store.letters(modes=["real"]), "campaign_queue")
