"""From queue and inbox to the store: nothing lost, nothing twice, nothing that blocks the rest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from mailout.adapters.sqlite import SqliteStore
from mailout.base import error_log
from mailout.base.errors import MailoutError, StoreError, StoreUnavailable
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.port import SubscriberRow
from mailout.outbox.delivery.provider_limits import ProviderLimits
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.feedback.ingest import QueueMessage, ingest, poll, unwrap
from mailout.outbox.feedback.port import Applied, EventReading
from mailout.outbox.feedback.reconcile import reconcile
from mailout.outbox.feedback.suppression import Reason, pull, to_push
from mailout.outbox.queue import dead_letters
from tests.clocks import NOON, FakeClock
from tests.new_sqlite import open_new
from tests.ses_events import ses_event
from tests.sns_messages import TOPIC, Topic

ANN = "ann@example.org"


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return open_new(tmp_path / "mailout.db", FakeClock())


class Queue:
    """Keeps messages until they are deleted, as SQS does, and can die in between."""

    def __init__(self, *bodies: str, dies_at: str = "") -> None:
        self.messages = {str(n): QueueMessage(str(n), body, f"r{n}") for n, body in enumerate(bodies)}
        self.dies_at = dies_at

    def receive(self, wait: int = 20) -> Sequence[QueueMessage]:
        return list(self.messages.values())[:10]

    def delete(self, messages: Sequence[QueueMessage]) -> None:
        if self.dies_at == "delete":
            self.dies_at = ""
            raise KeyboardInterrupt
        for message in messages:
            del self.messages[message.id]


def wrapped(message: str, topic: str = TOPIC) -> str:
    return Topic(arn=topic).notification(message).decode()


def test_raw_and_wrapped_messages_are_both_understood(store: SqliteStore) -> None:
    store.import_subscribers([SubscriberRow(ANN, ANN)])
    queue = Queue(ses_event("Delivery"), wrapped(ses_event("Bounce")))
    assert poll(store, queue, [TOPIC]) == 2
    assert queue.messages == {}
    assert ingest(store, "any").events == 2
    assert subscriber_rows.subscriber(store, ANN)["status"] == "bounced"


def test_a_message_leaves_the_queue_only_after_our_commit(store: SqliteStore) -> None:
    """Killed in between, it comes again, and meets itself."""
    queue = Queue(wrapped(ses_event("Open")), ses_event("Open", at=NOON + 1), dies_at="delete")
    with pytest.raises(KeyboardInterrupt):
        poll(store, queue, [TOPIC])
    assert (len(queue.messages), feedback_rows.inbox(store)["waiting"]) == (2, 2)
    assert poll(store, queue, [TOPIC]) == 2
    assert (len(queue.messages), feedback_rows.inbox(store)["waiting"]) == (0, 2)


def test_the_same_message_by_gateway_and_queue_is_one(store: SqliteStore) -> None:
    body = wrapped(ses_event("Open"))
    one, other = (unwrap(QueueMessage(id, body, "r"), [TOPIC]) for id in ("a", "b"))
    assert one.id == other.id == json.loads(body)["MessageId"]


def test_the_same_raw_event_twice_is_one_by_what_it_says(store: SqliteStore) -> None:
    poll(store, Queue(ses_event("Open"), ses_event("Open"), ses_event("Open", at=NOON + 1)), [])
    done = ingest(store, "any")
    assert (done.events, done.repeated) == (2, 1)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("<html>", "It is not JSON."),
        ("", "It is not JSON."),
        ("[" * 100_000, "It is not JSON."),
        ("\0", "It is not JSON."),
        ('{"hello": 1}', "It has neither eventType nor notificationType."),
        (wrapped(ses_event("Bounce"), TOPIC + "x"), "It is from an SNS topic that is not in SNS_TOPIC_ARNS."),
        ('{"Type": "Notification", "Message": {}}', "It has neither eventType nor notificationType."),
    ],
)
def test_a_poison_message_ends_in_the_dead_letters(store: SqliteStore, body: str, reason: str) -> None:
    """Left in the queue it would come back until the queue drops it, and take its turn each time."""
    queue = Queue(body, ses_event("Open"))
    assert poll(store, queue, [TOPIC]) == 2
    done = ingest(store, "any")
    assert (done.dead, done.events, queue.messages) == (1, 1, {})
    (letter,) = error_log.dead_letters(store)
    assert letter["error"] == reason


def test_what_came_from_a_topic_that_was_not_named_is_applied_once_it_is(store: SqliteStore) -> None:
    """The queue has it no more: without this a complaint would be lost by a forgotten setting."""
    store.import_subscribers([SubscriberRow(ANN, ANN)])
    poll(store, Queue(wrapped(ses_event("Complaint"), TOPIC + "x")), [TOPIC])
    for topics, dead, status in (([TOPIC], 1, "active"), ([TOPIC, TOPIC + "x"], 0, "unsubscribed")):
        ingest(store, "any", topics)
        assert len(error_log.dead_letters(store)) == dead
        assert subscriber_rows.subscriber(store, ANN)["status"] == status
        for letter in error_log.dead_letters(store):
            assert dead_letters.requeue(store, letter["id"]) == []


class Picky(SqliteStore):
    """Refuses one event, whatever it is with."""

    def apply_events(self, readings: Sequence[EventReading]) -> Applied:
        if any(effect.type == "click" for reading in readings for effect in reading.effects):
            raise StoreError("no clicks here")
        return super().apply_events(readings)


def test_an_event_that_the_store_refuses_does_not_hold_up_the_others(tmp_path: Path) -> None:
    store = Picky(tmp_path / "mailout.db", FakeClock())
    poll(store, Queue(ses_event("Open"), ses_event("Click"), ses_event("Delivery")), [])
    done = ingest(store, "any")
    assert (done.events, done.dead, feedback_rows.inbox(store)["waiting"]) == (2, 1, 0)
    assert "no clicks here" in error_log.dead_letters(store)[0]["error"]


def test_a_store_that_is_away_is_waited_for(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """An outage must not send good events to the dead letters."""
    poll(store, Queue(ses_event("Open")), [])

    def away(*_: object) -> Applied:
        raise StoreUnavailable

    monkeypatch.setattr(store, "apply_events", away)
    with pytest.raises(StoreUnavailable):
        ingest(store, "any")
    monkeypatch.undo()
    assert ingest(store, "any").events == 1


def test_small_batches_come_to_the_same(store: SqliteStore) -> None:
    poll(store, Queue(*(ses_event("Open", at=NOON + n) for n in range(7))), [])
    assert ingest(store, "any", batch=2).events == 7
    assert feedback_rows.inbox(store)["waiting"] == 0


# ── The suppression list ─────────────────────────────────────────────────────────────────────────


class Suppressed:
    def __init__(self, **reasons: Reason) -> None:
        self.reasons = reasons

    def pages(self) -> object:
        for name, reason in self.reasons.items():
            yield {f"{name.upper()}@Example.org": reason.change(NOON)}

    def put(self, email: str, reason: Reason) -> None:
        self.reasons[email] = reason


def test_what_ses_suppresses_is_taken_over(store: SqliteStore) -> None:
    emails = [f"{name}@example.org" for name in ("ann", "bob", "eve")]
    store.import_subscribers([SubscriberRow(email, email) for email in emails])
    there = Suppressed(ann=Reason.BOUNCE, bob=Reason.COMPLAINT, stranger=Reason.BOUNCE)
    assert pull(store, there) == (3, 2)  # type: ignore[arg-type]
    assert pull(store, there) == (3, 0)  # type: ignore[arg-type]
    assert subscriber_rows.subscriber_counts(store) == {"active": 1, "unsubscribed": 1, "bounced": 1}


def test_ses_is_told_who_complained_and_whose_address_is_dead(store: SqliteStore) -> None:
    rows = [
        SubscriberRow("dead@example.org", "dead@example.org", "bounced", bounce_type="Permanent"),
        SubscriberRow("full@example.org", "full@example.org", "bounced", bounce_type="Transient"),
        SubscriberRow("gone@example.org", "gone@example.org", "unsubscribed"),
        SubscriberRow("angry@example.org", "angry@example.org"),
        SubscriberRow("known@example.org", "known@example.org"),
    ]
    store.import_subscribers(rows)
    store.change_statuses(
        {
            "angry@example.org": Reason.COMPLAINT.change(NOON),
            "known@example.org": Reason.BOUNCE.change(NOON),
        }
    )
    assert dict(to_push(store)) == {"angry@example.org": Reason.COMPLAINT, "dead@example.org": Reason.BOUNCE}


# ── Reconciling ──────────────────────────────────────────────────────────────────────────────────


def test_reconcile_says_what_needs_a_person(store: SqliteStore) -> None:
    asked: list[str] = []
    found = reconcile(store, lambda: store.reap(45.0), refresh_quota=lambda: asked.append("quota"))
    assert (found.reaped, found.doubts.unknown, found.drift, asked) == (0, 0, (), ["quota"])


def test_a_provider_that_does_not_answer_does_not_stop_the_rest(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    class Silent:
        scope = "ses"

        def allowance(self) -> None:
            raise MailoutError("SES: no answer")

    provider = ProviderLimits(store, Silent(), FakeClock())  # type: ignore[arg-type]
    assert reconcile(store, lambda: store.reap(45.0), provider.ask).drift == ()
    assert "SES: no answer" in caplog.text
