"""SES's events, from the inbox to messages, subscribers and counts: the same on every store."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailout.base import error_log
from mailout.base.ids import uuid_of
from mailout.letters.audience import subscriber_rows
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.protocol import Attempt, Claimed
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.feedback.ingest import ingest, read
from mailout.outbox.feedback.port import Applied, EventReading, Received, StatusChange
from mailout.outbox.queue.mailout import MailoutOutcome
from mailout.store import Store
from tests.clocks import NOON, FakeClock
from tests.contract.scenes import (
    NOWHERE,
    Sender,
    assert_ledger,
    buckets,
    mailout,
    result,
    state_of,
    states,
    subscribe,
)
from tests.contract.stores import StoreFactory
from tests.ses_events import ses_event

ANN, BOB = "ann@example.org", "bob@example.org"


def receive(store: Store, *payloads: str) -> list[str]:
    ids = [uuid_of("sns", str(number), payload) for number, payload in enumerate(payloads)]
    store.receive_events([Received(id, "sns", payload) for id, payload in zip(ids, payloads, strict=True)])
    return ids


def hear(store: Store, *payloads: str, policy: str = "any") -> Applied:
    receive(store, *payloads)
    return ingest(store, policy)  # type: ignore[arg-type]


def sent(store: Store, *emails: str) -> tuple[str, Sequence[Claimed]]:
    """A mailout whose messages are all sent."""
    id = mailout(store, *emails)
    sender = Sender(store, id)
    claimed = sender.begin(len(emails))
    sender.step(results=[result(one) for one in claimed])
    return id, claimed


# ── The inbox ────────────────────────────────────────────────────────────────────────────────────


def test_a_message_is_kept_once_and_its_payload_goes_when_it_is_applied(
    store: Store, factory: StoreFactory
) -> None:
    """SNS repeats itself; and raw payloads would soon be larger than the outbox."""
    (id,) = receive(store, ses_event("Send"))
    assert store.receive_events([Received(id, "sns", "something else")]) == 0
    assert [(row.id, row.payload) for row in feedback_rows.waiting_events(store, 10)] == [
        (id, ses_event("Send"))
    ]
    assert feedback_rows.inbox(store) == {"waiting": 1, "oldest": NOON}
    ingest(store, "any")
    assert feedback_rows.waiting_events(store, 10) == []
    assert feedback_rows.inbox(store) == {"waiting": 0, "oldest": None}
    assert [row["payload"] for row in factory.raw("SELECT payload FROM events_inbox")] == [None]


def test_a_replay_after_it_was_applied_changes_nothing(store: Store) -> None:
    id, (ann,) = sent(store, ANN)
    event = ses_event("Delivery", attempt=ann.attempt)
    assert hear(store, event).events == 1
    assert hear(store, event) == Applied()
    assert store.mailout(id).metrics == {"delivered": 1}


def test_two_that_apply_the_same_rows_apply_them_once(store: Store, factory: StoreFactory) -> None:
    """Two flow runs at once, or one that was killed after its commit and before it knew."""
    id, (ann,) = sent(store, ANN)
    receive(store, ses_event("Bounce", attempt=ann.attempt), "gibberish")
    readings = [read(row, "any") for row in feedback_rows.waiting_events(store, 10)]
    assert store.apply_events(readings).events == 1
    assert factory.open_again().apply_events(readings) == Applied()
    assert (store.mailout(id).metrics, len(error_log.dead_letters(store)), len(error_log.errors(store))) == (
        {"bounced": 1},
        1,
        1,
    )


def test_a_reading_of_nothing_in_the_inbox_is_passed_over(store: Store) -> None:
    assert store.apply_events([EventReading(NOWHERE, problem=("x", "y"))]) == Applied()
    assert error_log.errors(store) == []


def test_an_unknown_type_is_logged_and_changes_nothing(store: Store) -> None:
    id, (ann,) = sent(store, ANN)
    done = hear(store, ses_event("Surprise", attempt=ann.attempt))
    (error,) = error_log.errors(store)
    assert (error.code, error.stage, error.provider) == ("unknown_event_type", "feedback", "ses")
    assert (done.problems, done.events, store.mailout(id).metrics) == (1, 0, {})
    assert error_log.dead_letters(store) == []


def test_what_nobody_can_read_ends_in_the_dead_letters_with_its_reason(store: Store) -> None:
    done = hear(store, "<html>", ses_event("Send"))
    (letter,) = error_log.dead_letters(store)
    assert (letter["topic"], letter["payload"]["body"]) == ("ses-events", "<html>")
    assert letter["error"] == "It is not JSON."
    assert (done.dead, done.events, feedback_rows.inbox(store)["waiting"]) == (1, 1, 0)


# ── Messages ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "name", ["Send", "Delivery", "Bounce", "Complaint", "Open", "Click", "DeliveryDelay"]
)
@pytest.mark.parametrize("before", [State.SENT_ATTEMPT, State.RETRY_SCHEDULED, State.UNKNOWN])
def test_an_event_settles_what_our_own_sender_does_not_know(store: Store, name: str, before: State) -> None:
    """PROTOCOL §1.8: an event may be faster than the result, and is the end of an unknown."""
    id = mailout(store, ANN)
    sender = Sender(store, id)
    ann = sender.begin_one().attempt
    if before is not State.SENT_ATTEMPT:
        sender.step(results=[result(ann, before, retry_in=0.0)])
    assert hear(store, ses_event(name, attempt=ann, ses_id="ses-7")).confirmed == 1
    assert (state_of(store, ann.id), outbox_rows.message(store, ann.id)["ses_message_id"]) == (
        State.SENT,
        "ses-7",
    )
    assert sender.begin() == []
    sender.step(results=[result(ann, provider_message_id="ses-7")])
    assert_ledger(store, id)
    assert store.complete(id).outcome is MailoutOutcome.SENT


def test_an_event_of_an_older_attempt_moves_nothing(store: Store) -> None:
    id = mailout(store, ANN)
    sender = Sender(store, id)
    old = sender.begin_one().attempt
    sender.step(withdraw=[old])
    sender.begin_one()
    assert hear(store, ses_event("Delivery", attempt=old)).confirmed == 0
    assert states(store, id) == {ANN: State.SENT_ATTEMPT}


@pytest.mark.parametrize(
    ("name", "code"), [("Reject", "MESSAGE_REJECTED"), ("Rendering Failure", "RENDERING_FAILURE")]
)
@pytest.mark.parametrize("recorded", [True, False])
def test_a_rejection_makes_the_message_failed(store: Store, name: str, code: str, recorded: bool) -> None:
    """Whether or not our own sender had written its acceptance down before."""
    id = mailout(store, ANN)
    sender = Sender(store, id)
    ann = sender.begin_one().attempt
    if recorded:
        sender.step(results=[result(ann)])
    done = hear(store, ses_event(name, attempt=ann))
    sender.step(results=[result(ann)])
    row = outbox_rows.message(store, ann.id)
    assert (done.revoked, row["state"], row["error_code"]) == (1, State.FAILED, code)
    assert row["error_message"].endswith("Bad content" if name == "Reject" else "'name' is not present")
    assert_ledger(store, id)
    assert subscriber_rows.subscriber(store, ANN)["status"] == "active"


def test_a_notification_without_tags_is_known_by_ses_s_own_id(store: Store) -> None:
    id, (ann, _) = sent(store, ANN, BOB)
    ses_id = outbox_rows.message(store, ann.attempt.id)["ses_message_id"]
    done = hear(store, ses_event("Bounce", shape="notificationType", ses_id=ses_id))
    assert (done.strangers, store.mailout(id).metrics) == (0, {"bounced": 1})
    assert feedback_rows.delivery_events(store, message_id=ann.attempt.id)[0]["campaign_id"] == id


def test_an_untagged_rejection_of_an_earlier_attempt_leaves_the_new_one_alone(store: Store) -> None:
    id, (ann,) = sent(store, ANN)
    ses_id = outbox_rows.message(store, ann.attempt.id)["ses_message_id"]
    hear(store, ses_event("Reject", attempt=ann.attempt, ses_id=ses_id))
    store.retry_failed(id)
    store.start(id, "worker")
    Sender(store, id).begin_one()
    hear(store, ses_event("Reject", ses_id=ses_id, at=NOON + 1))
    assert state_of(store, ann.attempt.id) is State.SENT_ATTEMPT


def test_an_event_of_somebody_else_s_message_is_counted_and_harms_nobody(store: Store) -> None:
    subscribe(store, ANN)
    done = hear(
        store, ses_event("Delivery", "stranger@example.net"), ses_event("Bounce", "stranger@example.net")
    )
    assert (done.events, done.strangers, done.statuses) == (2, 2, 0)
    assert subscriber_rows.subscriber_counts(store) == {"active": 1, "unsubscribed": 0, "bounced": 0}
    assert {
        row["event_type"] for row in feedback_rows.delivery_events(store, email="stranger@example.net")
    } == {
        "delivered",
        "bounce",
    }


def test_a_bounce_of_a_forwarded_mail_counts_for_whom_it_was_sent_to(store: Store) -> None:
    _, (ann,) = sent(store, ANN)
    recipients = [{"emailAddress": "ann@forwarded.example"}]
    hear(store, ses_event("Bounce", attempt=ann.attempt, bouncedRecipients=recipients))
    assert subscriber_rows.subscriber(store, ANN)["status"] == "bounced"
    assert [row["event_type"] for row in feedback_rows.delivery_events(store, email=ANN)] == ["bounce"]


# ── Counts ───────────────────────────────────────────────────────────────────────────────────────


def test_a_mailout_counts_messages_not_repetitions(store: Store) -> None:
    """Somebody who opens a letter five times is one reader."""
    id, (ann, bob) = sent(store, ANN, BOB)
    events = [ses_event("Open", attempt=ann.attempt, at=NOON + n) for n in range(5)]
    events += [ses_event("Open", BOB, attempt=bob.attempt), ses_event("Click", attempt=ann.attempt)]
    events += [
        ses_event(name, attempt=ann.attempt) for name in ("Delivery", "DeliveryDelay", "Complaint", "Send")
    ]
    events += [ses_event("Bounce", BOB, attempt=bob.attempt), ses_event("Reject", BOB, attempt=bob.attempt)]
    events += [ses_event("Rendering Failure", BOB, attempt=bob.attempt)]
    # The same bounce told twice: by the configuration set, and as a notification of its own.
    ses_id = outbox_rows.message(store, bob.attempt.id)["ses_message_id"]
    events += [ses_event("Bounce", BOB, shape="notificationType", ses_id=ses_id)]
    hear(store, *events)
    assert store.mailout(id).metrics == {
        "opened": 2,
        "clicked": 1,
        "delivered": 1,
        "delayed": 1,
        "complained": 1,
        "bounced": 1,
        "rejected": 1,
        "rendering_failures": 1,
    }
    assert len(feedback_rows.delivery_events(store, message_id=ann.attempt.id)) == 10


def test_events_keep_what_a_person_wants_to_read_later(store: Store) -> None:
    _, (ann,) = sent(store, ANN)
    hear(store, ses_event("Bounce", attempt=ann.attempt, at=NOON + 7))
    (row,) = feedback_rows.delivery_events(store, message_id=ann.attempt.id)
    assert (row["event_at"], row["email"], row["event_type"]) == (NOON + 7, ANN, "bounce")
    assert row["detail"]["status"] == "5.1.1"


# ── Subscribers ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("policy", "bounce_type", "status"),
    [
        ("any", "Permanent", "bounced"),
        ("any", "Transient", "bounced"),
        ("any", "Undetermined", "bounced"),
        ("permanent", "Permanent", "bounced"),
        ("permanent", "Transient", "active"),
        ("permanent", "Undetermined", "active"),
    ],
)
def test_a_bounce_follows_the_policy(store: Store, policy: str, bounce_type: str, status: str) -> None:
    subscribe(store, ANN)
    hear(store, ses_event("Bounce", bounceType=bounce_type, at=NOON - 60), policy=policy)
    found = subscriber_rows.subscriber(store, ANN)
    assert found["status"] == status
    if status == "bounced":
        assert (found["bounce_type"], found["bounce_subtype"]) == (bounce_type, "General")
        assert found["status_updated_at"] == NOON - 60


def test_a_complaint_unsubscribes_and_not_spam_does_not(store: Store) -> None:
    subscribe(store, ANN, BOB)
    hear(store, ses_event("Complaint"), ses_event("Complaint", BOB, complaintFeedbackType="not-spam"))
    assert (
        subscriber_rows.subscriber(store, ANN)["status"],
        subscriber_rows.subscriber(store, BOB)["status"],
    ) == ("unsubscribed", "active")


def test_delivery_changes_no_status(store: Store) -> None:
    subscribe(store, ANN)
    before = subscriber_rows.subscriber(store, ANN)
    hear(store, *(ses_event(name) for name in ("Send", "Delivery", "Open", "Click", "DeliveryDelay")))
    assert subscriber_rows.subscriber(store, ANN) == before


def test_bounce_after_unsubscribe_and_complaint_after_bounce(store: Store) -> None:
    subscribe(store, ANN, status="unsubscribed")
    subscribe(store, BOB, status="bounced")
    hear(store, ses_event("Bounce", at=NOON + 1), ses_event("Complaint", BOB, at=NOON + 1))
    assert (
        subscriber_rows.subscriber(store, ANN)["status"],
        subscriber_rows.subscriber(store, BOB)["status"],
    ) == ("bounced", "bounced")


NEWS = [
    ses_event("Bounce", bounceType="Permanent", at=NOON - 30),
    ses_event("Bounce", bounceType="Transient", bounceSubType="MailboxFull", at=NOON - 20),
    ses_event("Complaint", at=NOON - 10),
    ses_event("Complaint", at=NOON - 40),
    ses_event("Delivery", at=NOON - 50),
    ses_event("Subscription", at=NOON - 5),
]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(order=st.permutations(NEWS), cuts=st.sets(st.integers(1, 5)))
def test_any_order_in_any_batches_ends_in_the_same_state(
    factory: StoreFactory, order: list[str], cuts: set[int]
) -> None:
    """SES promises no order, and SNS repeats and reorders on its own."""
    store = factory.make(FakeClock())
    subscribe(store, ANN)
    start = 0
    for end in [*sorted(cuts), len(order)]:
        hear(store, *order[start:end])
        start = end
    found = subscriber_rows.subscriber(store, ANN)
    assert (found["status"], found["status_updated_at"]) == ("bounced", NOON - 20)
    assert (found["bounce_type"], found["bounce_subtype"]) == ("Transient", "MailboxFull")
    assert not store.resubscribe(ANN, None)


def test_news_without_an_event_counts_the_same(store: Store) -> None:
    """SES's suppression list knows who bounced or complained before we kept any record."""
    subscribe(store, ANN, BOB)
    news = {
        ANN: StatusChange("bounced", NOON - 9, "Permanent", "OnAccountSuppressionList"),
        BOB: StatusChange("unsubscribed", NOON - 9, complained=True),
        "stranger@example.net": StatusChange("bounced", NOON),
    }
    assert (store.change_statuses(news), store.change_statuses(news)) == (2, 0)
    assert subscriber_rows.subscriber(store, ANN)["bounce_subtype"] == "OnAccountSuppressionList"
    assert not store.resubscribe(BOB, None)


# ── What `reconcile` asks ────────────────────────────────────────────────────────────────────────


def test_unknowns_are_counted_over_all_mailouts_with_the_oldest(store: Store, factory: StoreFactory) -> None:
    for number, ref in enumerate(("one", "two")):
        factory.set_now(NOON + number * 60)
        sender = Sender(store, mailout(store, ANN, ref=ref))
        sender.step(results=[result(sender.begin_one(), State.UNKNOWN)])
    doubts = feedback_rows.doubts_open(store)
    assert (doubts.unknown, doubts.oldest) == (2, NOON)


def test_a_counter_that_says_less_than_was_begun_is_found(store: Store, factory: StoreFactory) -> None:
    sender = Sender(store, mailout(store, ANN, BOB))
    sender.begin(2, buckets=buckets(NOON))
    assert feedback_rows.usage_drift(store) == []
    factory.raw("UPDATE usage SET n = 1 WHERE kind = 'day' AND scope = 'all'")
    (drift,) = feedback_rows.usage_drift(store)
    assert (drift.scope, drift.kind, drift.counted, drift.charged) == ("all", "day", 1, 2)


def test_an_attempt_that_never_was_is_nobody_s(store: Store) -> None:
    assert hear(store, ses_event("Delivery", attempt=Attempt(NOWHERE, 1))).strangers == 1
