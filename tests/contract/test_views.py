"""One truth, each seed's vocabulary: what the views tell of a message, in order and by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mailout.base.ids import article_id
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.protocol import Attempt
from mailout.outbox.delivery.states import State
from mailout.outbox.queue.port import Recipient
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import Sender, confirmed, handed_mailout, mailout, moment, rejected, result
from tests.contract.stores import StoreFactory

ANN, BOB = "ann@example.org", "bob@example.org"
BEGUN = ["RECEIVED", "VALIDATED", "SENT_ATTEMPT"]
THROTTLED = {
    "code": "SES_THROTTLED",
    "category": "TRANSIENT_ERROR",
    "message": "Maximum sending rate exceeded",
    "original_code": "TooManyRequestsException",
}
REJECTED = {
    "code": "SES_MESSAGE_REJECTED",
    "category": "PERMANENT_ERROR",
    "message": "Address is not verified",
    "original_code": "MessageRejected",
}


@pytest.fixture
def sender(store: Store) -> Sender:
    return Sender(store, mailout(store, ANN), lease=10**6)


def told(store: Store, attempt: Attempt) -> list[str]:
    return [event["type"] for event in outbox_rows.message_events(store, attempt.id)]


def metadata(store: Store, attempt: Attempt, type: str, which: int = 0) -> Mapping[str, Any]:
    found = [event for event in outbox_rows.message_events(store, attempt.id) if event["type"] == type]
    return found[which]["metadata"]


def test_a_message_that_was_sent_tells_every_step(
    store: Store, factory: StoreFactory, sender: Sender
) -> None:
    claimed = sender.begin_one()
    factory.set_now(NOON + 1.25)
    sender.step(results=[result(claimed, provider_message_id="ses-1", duration_ms=42)])
    events = outbox_rows.message_events(store, claimed.attempt.id)
    assert [event["type"] for event in events] == [*BEGUN, "SENT"]
    assert [moment(event["created_at"]) for event in events] == [NOON, NOON, NOON, NOON + 1.25]
    assert [event["metadata"]["attempt"] for event in events] == [1, 1, 1, 1]
    assert events[3]["metadata"] == {"sesMessageId": "ses-1", "durationMs": 1250, "attempt": 1}


def test_a_message_that_waits_has_no_events_yet(store: Store, sender: Sender) -> None:
    (row,) = outbox_rows.messages(store, sender.mailout_id)
    assert outbox_rows.message_events(store, row["id"]) == []


def test_a_retry_then_sent_tells_both_attempts_by_name(
    store: Store, factory: StoreFactory, sender: Sender
) -> None:
    first = sender.begin_one()
    transient = result(first, State.RETRY_SCHEDULED, retry_in=4.2, duration_ms=7, **THROTTLED)
    sender.step(results=[transient])
    factory.set_now(NOON + 5)
    sender.step(results=[result(sender.begin_one(), provider_message_id="ses-2", duration_ms=9)])
    assert told(store, first.attempt) == [*BEGUN, "RETRY_SCHEDULED", *BEGUN, "SENT"]
    assert metadata(store, first.attempt, "RETRY_SCHEDULED") == {
        "attempt": 1,
        "errorCode": "SES_THROTTLED",
        "errorCategory": "TRANSIENT_ERROR",
        "errorMessage": "Maximum sending rate exceeded",
        "originalCode": "TooManyRequestsException",
        "willRetry": True,
        "nextAttemptNumber": 2,
        "backoffDelay": 4200,
        "durationMs": 0,
    }
    assert metadata(store, first.attempt, "RECEIVED", 1) == {"attempt": 2}
    assert metadata(store, first.attempt, "SENT") == {"sesMessageId": "ses-2", "durationMs": 0, "attempt": 2}


def given_back(factory: StoreFactory, sender: Sender, at: float, **error: Any) -> Attempt:
    """One attempt that the provider surely did not take."""
    factory.set_now(at)
    claimed = sender.begin_one()
    factory.set_now(at + 0.5)
    sender.step(results=[result(claimed, State.PENDING, give_back=True, **error)])
    return claimed.attempt


def test_a_throttled_call_is_told_with_its_code_and_when_it_goes_on(
    store: Store, factory: StoreFactory, sender: Sender
) -> None:
    """It spends no attempt, and somebody who asks why a mail is late finds the reason."""
    attempt = given_back(factory, sender, NOON, retry_in=2.5, **THROTTLED)
    assert told(store, attempt) == [*BEGUN, "PENDING"]
    assert metadata(store, attempt, "PENDING") == {
        "attempt": 1,
        "errorCode": "SES_THROTTLED",
        "errorCategory": "TRANSIENT_ERROR",
        "errorMessage": "Maximum sending rate exceeded",
        "originalCode": "TooManyRequestsException",
        "willRetry": True,
        "nextAttemptNumber": 1,
        "backoffDelay": 2500,
        "durationMs": 500,
        "count": 1,
    }
    row = outbox_rows.message(store, attempt.id)
    assert (row["state"], row["attempts"], row["next_attempt_at"]) == ("PENDING", 0, NOON + 3)
    (log,) = factory.raw("SELECT status, error_code FROM email_logs")
    assert tuple(log.values()) == ("PENDING", "SES_THROTTLED")


def test_an_hour_of_throttling_is_one_line_with_a_count_and_the_last_time(
    store: Store, factory: StoreFactory, sender: Sender
) -> None:
    """A row that grows with every refusal would fill the store just when it is slow."""
    for minute in range(60):
        attempt = given_back(factory, sender, NOON + 60 * minute, retry_in=1.0, **THROTTLED)
    events = outbox_rows.message_events(store, attempt.id)
    assert [event["type"] for event in events] == [*BEGUN, "PENDING"]
    assert [moment(event["created_at"]) for event in events] == [NOON, NOON, NOON, NOON + 59 * 60 + 0.5]
    assert events[3]["metadata"]["count"] == 60
    factory.set_now(NOON + 3700)
    sender.step(results=[result(sender.begin_one())])
    assert told(store, attempt) == [*BEGUN, "PENDING", *BEGUN, "SENT"]
    assert metadata(store, attempt, "SENT")["attempt"] == 1


def test_another_reason_is_another_line(store: Store, factory: StoreFactory, sender: Sender) -> None:
    given_back(factory, sender, NOON, retry_in=1.0, **THROTTLED)
    given_back(factory, sender, NOON + 10, **(THROTTLED | {"code": "SES_DAILY_QUOTA_EXCEEDED"}))
    attempt = given_back(factory, sender, NOON + 20, retry_in=1.0, **THROTTLED)
    assert told(store, attempt) == [*BEGUN, "PENDING", *BEGUN, "PENDING", *BEGUN, "PENDING"]
    assert [metadata(store, attempt, "PENDING", n)["backoffDelay"] for n in range(3)] == [1000, None, 1000]


def test_a_message_that_was_only_withdrawn_has_nothing_to_tell(store: Store, sender: Sender) -> None:
    """Its slot had passed: no call was made, and nothing was refused."""
    claimed = sender.begin_one()
    sender.step(withdraw=[claimed.attempt])
    assert told(store, claimed.attempt) == []


def test_a_person_who_settles_it_as_pending_is_not_counted_as_a_throttle(
    store: Store, factory: StoreFactory, sender: Sender
) -> None:
    claimed = sender.begin_one()
    sender.step(results=[result(claimed, State.UNKNOWN)])
    store.settle(sender.mailout_id, State.PENDING, wait=0.0)
    given_back(factory, sender, NOON + 10, retry_in=1.0, **THROTTLED)
    assert told(store, claimed.attempt) == [*BEGUN, "UNKNOWN", "PENDING", *BEGUN, "PENDING"]


def test_a_failure_tells_why_and_stays_told_after_a_retry(
    store: Store, factory: StoreFactory, sender: Sender
) -> None:
    """What happened does not change because somebody tries again."""
    first = sender.begin_one()
    sender.step(results=[result(first, State.FAILED, duration_ms=3, **REJECTED)])
    before = outbox_rows.message_events(store, first.attempt.id)
    assert [event["type"] for event in before] == [*BEGUN, "FAILED"]
    assert metadata(store, first.attempt, "FAILED") == {
        "attempt": 1,
        "errorCode": "SES_MESSAGE_REJECTED",
        "errorCategory": "PERMANENT_ERROR",
        "errorMessage": "Address is not verified",
        "originalCode": "MessageRejected",
        "willRetry": False,
        "durationMs": 0,
    }
    factory.set_now(NOON + 60)
    store.retry_failed(sender.mailout_id)
    assert outbox_rows.message_events(store, first.attempt.id) == before
    sender.step(results=[result(sender.begin_one())])
    assert told(store, first.attempt) == [*BEGUN, "FAILED", *BEGUN, "SENT"]


def test_an_unknown_that_was_settled_tells_the_doubt_and_the_word(store: Store, sender: Sender) -> None:
    claimed = sender.begin_one()
    sender.step(results=[result(claimed, State.UNKNOWN, code="TIMEOUT", message="No answer in 30 s")])
    assert told(store, claimed.attempt) == [*BEGUN, "UNKNOWN"]
    doubt = metadata(store, claimed.attempt, "UNKNOWN")
    assert (doubt["errorCode"], doubt["errorMessage"]) == ("TIMEOUT", "No answer in 30 s")
    store.settle(sender.mailout_id, State.SENT, wait=0.0)
    assert told(store, claimed.attempt) == [*BEGUN, "UNKNOWN", "SENT"]
    assert metadata(store, claimed.attempt, "SENT")["settled"] is True


def test_an_unknown_keeps_category_and_the_providers_own_code(
    store: Store, factory: StoreFactory, sender: Sender
) -> None:
    """Whoever settles it has to know whether it was the network or the provider."""
    claimed = sender.begin_one()
    lost = {"code": "TIMEOUT", "category": "TRANSIENT_ERROR", "original_code": "ReadTimeoutError"}
    sender.step(results=[result(claimed, State.UNKNOWN, message="No answer in 30 s", **lost)])
    doubt = metadata(store, claimed.attempt, "UNKNOWN")
    assert (doubt["errorCategory"], doubt["originalCode"]) == ("TRANSIENT_ERROR", "ReadTimeoutError")
    (row,) = factory.raw("SELECT error_code, error_category, original_code FROM email_outbox")
    assert tuple(row.values()) == ("TIMEOUT", "TRANSIENT_ERROR", "ReadTimeoutError")


def test_an_unknown_without_an_answer_does_not_keep_the_error_of_the_attempt_before(
    store: Store, factory: StoreFactory, sender: Sender
) -> None:
    sender.step(results=[result(sender.begin_one(), State.RETRY_SCHEDULED, **THROTTLED)])
    sender.begin_one()
    factory.set_now(NOON + 10**7)
    assert store.reap(0.0) == 1
    (row,) = factory.raw("SELECT state, error_code, error_category, original_code FROM email_outbox")
    assert tuple(row.values()) == ("UNKNOWN", None, None, None)


@pytest.mark.parametrize(
    ("test_run", "checks"),
    [(False, ["OUTBOX", "RECIPIENT", "TEMPLATE"]), (True, ["OUTBOX", "TEMPLATE"])],
)
def test_a_validated_message_says_which_checks_were_made(
    store: Store, test_run: bool, checks: list[str]
) -> None:
    """Whether a test's recipient is subscribed is not asked."""
    sender = Sender(store, mailout(store, ANN, is_test=test_run), lease=10**6)
    claimed = sender.begin_one()
    assert metadata(store, claimed.attempt, "VALIDATED") == {"attempt": 1, "checks": checks}
    assert metadata(store, claimed.attempt, "RECEIVED") == {"attempt": 1}


def test_every_log_names_what_asked_for_the_message(
    store: Store, factory: StoreFactory, sender: Sender
) -> None:
    """Else one cannot follow it back: a mailout where no request did."""
    (row,) = factory.raw("SELECT request_id FROM email_logs")
    assert row["request_id"] == sender.mailout_id
    factory.raw("UPDATE email_outbox SET request_id = 'asked'")
    (row,) = factory.raw("SELECT request_id FROM email_logs")
    assert row["request_id"] == "asked"


def test_an_unknown_sent_again_tells_both_attempts(store: Store, sender: Sender) -> None:
    claimed = sender.begin_one()
    sender.step(results=[result(claimed, State.UNKNOWN)])
    store.settle(sender.mailout_id, State.PENDING, wait=0.0)
    sender.step(results=[result(sender.begin_one())])
    assert told(store, claimed.attempt) == [*BEGUN, "UNKNOWN", "PENDING", *BEGUN, "SENT"]


def test_an_unknown_settled_as_failed_and_retried_is_told_once(store: Store, sender: Sender) -> None:
    claimed = sender.begin_one()
    sender.step(results=[result(claimed, State.UNKNOWN)])
    store.settle(sender.mailout_id, State.FAILED, wait=0.0)
    assert told(store, claimed.attempt) == [*BEGUN, "UNKNOWN", "FAILED"]
    store.retry_failed(sender.mailout_id)
    assert told(store, claimed.attempt) == [*BEGUN, "UNKNOWN", "FAILED"]


@pytest.mark.parametrize("late", [State.SENT, State.FAILED, State.RETRY_SCHEDULED])
def test_a_late_result_follows_the_doubt_without_a_second_attempt(
    store: Store, sender: Sender, late: State
) -> None:
    """One attempt told twice would be taken for a message sent twice."""
    claimed = sender.begin_one()
    sender.step(results=[result(claimed, State.UNKNOWN)])
    sender.step(results=[result(claimed, late)])
    assert told(store, claimed.attempt) == [*BEGUN, "UNKNOWN", late]


def test_a_withdrawn_attempt_is_not_told(store: Store, sender: Sender) -> None:
    claimed = sender.begin_one()
    sender.step(withdraw=[claimed.attempt])
    assert told(store, claimed.attempt) == []
    sender.step(results=[result(sender.begin_one())])
    assert told(store, claimed.attempt) == [*BEGUN, "SENT"]


def test_an_event_after_a_transient_error_ends_the_same_attempt(store: Store, sender: Sender) -> None:
    claimed = sender.begin_one()
    sender.step(results=[result(claimed, State.RETRY_SCHEDULED, retry_in=9.0)])
    assert confirmed(store, claimed.attempt, "ses-3")
    assert told(store, claimed.attempt) == [*BEGUN, "RETRY_SCHEDULED", "SENT"]


def test_a_rejected_message_tells_that_it_was_accepted_first(store: Store, sender: Sender) -> None:
    claimed = sender.begin_one()
    sender.step(results=[result(claimed, provider_message_id="ses-4")])
    assert rejected(store, claimed.attempt, "ses-4")
    assert told(store, claimed.attempt) == [*BEGUN, "SENT", "FAILED"]
    assert metadata(store, claimed.attempt, "SENT")["sesMessageId"] == "ses-4"
    assert metadata(store, claimed.attempt, "FAILED")["errorCode"] == "MESSAGE_REJECTED"


def test_a_failed_validation_is_told_as_received_and_refused(store: Store, sender: Sender) -> None:
    claimed = sender.begin_one()
    sender.step(
        results=[
            result(claimed, State.VALIDATION_FAILED, code="INVALID_TEMPLATE", category="VALIDATION_ERROR")
        ]
    )
    assert told(store, claimed.attempt) == ["RECEIVED", "VALIDATION_FAILED"]
    refused = metadata(store, claimed.attempt, "VALIDATION_FAILED")
    assert (refused["errorCode"], refused["willRetry"]) == ("INVALID_TEMPLATE", False)


def test_a_recipient_that_is_gone_is_told_as_received_and_refused(store: Store) -> None:
    id = handed_mailout(store, Recipient(ANN, recipient_id="r-1"), is_test=True)
    Sender(store, id).begin()
    (row,) = outbox_rows.messages(store, id)
    assert [event["type"] for event in outbox_rows.message_events(store, row["id"])] == [
        "RECEIVED",
        "VALIDATION_FAILED",
    ]


def test_email_logs_hold_the_record_of_a_message(store: Store, factory: StoreFactory) -> None:
    id = mailout(store, ANN, BOB, company_id="acme")
    sender = Sender(store, id)
    ann, bob = sender.begin(2)
    factory.set_now(NOON + 2)
    failed = result(bob, State.FAILED, duration_ms=5, **REJECTED)
    sender.step(results=[result(ann, provider_message_id="ses-1", duration_ms=42), failed])
    sent, refused = factory.raw('SELECT * FROM email_logs ORDER BY "to"')
    assert (sent["outbox_id"], sent["company_id"], sent["to"], sent["subject"]) == (
        ann.attempt.id,
        "acme",
        ANN,
        "News",
    )
    assert (sent["status"], sent["ses_message_id"], sent["attempts"], sent["duration_ms"]) == (
        "SENT",
        "ses-1",
        1,
        2000,  # from RECEIVED to the end
    )
    assert (sent["error_code"], sent["error_reason"], sent["failed_at"]) == (None, None, None)
    assert (moment(sent["created_at"]), moment(sent["sent_at"])) == (NOON, NOON + 2)
    assert (refused["status"], refused["error_code"]) == ("FAILED", "SES_MESSAGE_REJECTED")
    assert refused["error_reason"] == "Address is not verified"
    assert (refused["sent_at"], moment(refused["failed_at"])) == (None, NOON + 2)


def test_delivery_history_tells_what_an_articles_batch_delivered(store: Store, factory: StoreFactory) -> None:
    id = handed_mailout(
        store,
        Recipient(ANN),
        Recipient(BOB),
        id=article_id("spring", "batch-1"),
        ref="article",
        is_test=True,
        campaign_tag="spring",
        send_batch_id="batch-1",
    )
    sender = Sender(store, id)
    ann, bob = sender.begin(2)
    sender.step(results=[result(ann, provider_message_id="ses-1"), result(bob, State.FAILED)])
    (row,) = factory.raw("SELECT * FROM delivery_history")
    assert moment(row["sent_at"]) == NOON
    assert (row["email"], row["campaign_tag"], row["send_batch_id"], row["provider_message_id"]) == (
        ANN,
        "spring",
        "batch-1",
        "ses-1",
    )


def test_send_logs_have_a_line_for_each_message_tried_to_the_end(store: Store, factory: StoreFactory) -> None:
    id = mailout(store, ANN, BOB, "cat@example.org")
    sender = Sender(store, id)
    ann, bob = sender.begin(2)
    sender.step(results=[result(ann, provider_message_id="ses-1"), result(bob, State.FAILED, **REJECTED)])
    sent, failed = factory.raw("SELECT * FROM send_logs ORDER BY email")
    assert (sent["campaign_id"], sent["email"], sent["provider"], sent["status"], sent["message_id"]) == (
        id,
        ANN,
        "folder",
        "sent",
        "ses-1",
    )
    assert (sent["error_message"], moment(sent["sent_at"]), moment(sent["created_at"])) == (None, NOON, NOON)
    assert (failed["email"], failed["status"], failed["error_message"]) == (
        BOB,
        "failed",
        "Address is not verified",
    )
    assert (failed["message_id"], failed["sent_at"]) == (None, None)
