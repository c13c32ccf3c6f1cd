"""How SQLite finds what a sender asks for: by an index, however many messages there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from mailout.adapters.sqlite import SqliteStore
from mailout.insight.alerts import alert_rows
from mailout.insight.history import history_rows
from mailout.insight.metrics import metric_rows
from mailout.letters.audience import subscriber_rows
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback import feedback_rows
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


ANN = PEOPLE[0]
READS: Mapping[str, tuple[Callable[[SqliteStore, str], object], str]] = {
    "a mailout's messages": (lambda s, id: outbox_rows.messages(s, id, after=1), "email_outbox_campaign"),
    "its report": (lambda s, id: list(outbox_rows.outcomes(s, id)), "email_outbox_campaign"),
    "what failed": (lambda s, id: outbox_rows.messages(s, id, states=[State.FAILED]), "email_outbox_failed"),
    "what is unknown": (lambda s, id: list(outbox_rows.outcomes(s, id, [State.UNKNOWN])), "outbox_failed"),
    "all doubts": (lambda s, id: feedback_rows.doubts_open(s), "email_outbox_failed"),
    "a dead sender's attempts": (lambda s, id: outbox_rows.open_attempts(s, id), "email_outbox_doubt"),
    "one message": (lambda s, id: outbox_rows.epochs(s, [id]), "autoindex_email_outbox"),
    "a message by its request": (lambda s, id: outbox_rows.find_messages(s, id), "email_outbox_request"),
    "a message by SES's id": (lambda s, id: outbox_rows.find_messages(s, id), "email_outbox_ses"),
    "mail to one person": (lambda s, id: history_rows.messages_to(s, ANN), "autoindex_email_outbox"),
    "what SES is silent about": (lambda s, id: alert_rows.alert_signs(s, "ses"), "email_outbox_single_sent"),
    "single mails to one": (lambda s, id: history_rows.single_mails_to(s, ANN), "email_outbox_single_to"),
    "the next page of letters": (
        lambda s, id: history_rows.letters(s, modes=["real"], before=(1.0, id)),
        "campaign_queue_created ((created_at,id)<",
    ),
    "notifications": (
        lambda s, id: history_rows.latest_notifications(s, rehearsal=False),
        "email_outbox_notifications",
    ),
    "people by name": (
        lambda s, id: subscriber_rows.subscribers(s, after="b"),
        "subscribers_1 (email_norm>?)",
    ),
    "who left": (lambda s, id: subscriber_rows.subscribers(s, status="bounced"), "subscribers_gone"),
    "the inbox": (lambda s, id: feedback_rows.waiting_events(s, 10), "events_inbox_waiting"),
    "events of a message": (
        lambda s, id: feedback_rows.delivery_events(s, message_id=id),
        "delivery_events_message",
    ),
    "events of a person": (
        lambda s, id: feedback_rows.delivery_events(s, email=ANN),
        "delivery_events_email",
    ),
    "living senders": (lambda s, id: outbox_rows.living_senders(s), "sender_sessions_open"),
    "unfinished mailouts": (lambda s, id: metric_rows.vitals(s, ""), "campaign_queue_open"),
}


@pytest.mark.parametrize("read", READS)
def test_a_view_is_read_by_an_index(store: SqliteStore, read: str) -> None:
    """Among a million messages or people a page would take seconds."""
    work, index = READS[read]
    id = mailout(store, *PEOPLE)
    said: list[str] = []
    connection = store.db._connection
    connection.set_trace_callback(said.append)
    work(store, id)
    connection.set_trace_callback(None)
    plans = [
        connection.execute(f"EXPLAIN QUERY PLAN {one}").fetchall() for one in said if "FROM read_" in one
    ]
    assert index in "; ".join(step["detail"] for plan in plans for step in plan)
