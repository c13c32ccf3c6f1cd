"""What nobody knows, until somebody says so: settling, retrying, events, and the mailout that follows."""

from __future__ import annotations

import pytest

from mailout.base.errors import NotFound, StoreError
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.protocol import Attempt
from mailout.outbox.delivery.states import State
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import MailoutOutcome, Status
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import (
    NOWHERE,
    Sender,
    assert_ledger,
    confirmed,
    mailout,
    rejected,
    result,
    state_of,
    states,
)
from tests.contract.stores import StoreFactory

ANN, BOB = "ann@example.org", "bob@example.org"
WAIT = 900.0


def ended(store: Store, **outcomes: State) -> tuple[str, list[Attempt]]:
    """A completed mailout to ann and bob, with these ends."""
    id = mailout(store, ANN, BOB)
    sender = Sender(store, id)
    rows = sender.begin(2)
    sender.step(results=[result(row, outcomes[row.email[:3]]) for row in rows], close=True)
    store.complete(id)
    return id, [row.attempt for row in rows]


def test_an_unknown_message_is_sent_again_only_after_the_wait(store: Store, factory: StoreFactory) -> None:
    """Its result may still be on the way: sent again too early, it is sent twice."""
    id, _ = ended(store, ann=State.UNKNOWN, bob=State.SENT)
    for early, minutes in ((1, 1), (61, 2), (120, 2), (149, 3)):  # rounded up: who waits so long is let in
        factory.set_now(NOON + WAIT - early)
        with pytest.raises(StoreError, match="too recently") as refused:
            store.settle(id, State.PENDING, wait=WAIT)
        assert f"wait {minutes} minutes" in str(refused.value.remedy)
    assert states(store, id)[ANN] is State.UNKNOWN
    factory.set_now(NOON + WAIT)
    assert store.settle(id, State.PENDING, wait=WAIT) == 1
    assert states(store, id)[ANN] is State.PENDING
    assert_ledger(store, id)


@pytest.mark.parametrize("to", [State.SENT, State.FAILED])
def test_a_settled_end_needs_no_wait(store: Store, to: State) -> None:
    id, _ = ended(store, ann=State.UNKNOWN, bob=State.UNKNOWN)
    assert store.settle(id, to, wait=WAIT) == 2
    assert set(states(store, id).values()) == {to}
    assert_ledger(store, id)


def test_some_can_be_settled_by_name(store: Store) -> None:
    id, (ann, bob) = ended(store, ann=State.UNKNOWN, bob=State.UNKNOWN)
    assert store.settle(id, State.SENT, wait=WAIT, ids=[bob.id, bob.id]) == 1
    assert states(store, id) == {ANN: State.UNKNOWN, BOB: State.SENT}
    assert store.settle(id, State.SENT, wait=WAIT, ids=[]) == 0
    with pytest.raises(NotFound):
        store.settle(id, State.SENT, wait=WAIT, ids=[ann.id, bob.id])
    assert states(store, id)[ANN] is State.UNKNOWN


@pytest.mark.parametrize("to", [State.SUPPRESSED, State.UNKNOWN, State.SENT_ATTEMPT])
def test_nobody_settles_a_message_as_something_else(store: Store, to: State) -> None:
    id, _ = ended(store, ann=State.UNKNOWN, bob=State.SENT)
    with pytest.raises(StoreError):
        store.settle(id, to, wait=0.0)


@pytest.mark.parametrize("to", [State.SENT, State.FAILED, State.PENDING])
def test_after_a_person_has_settled_it_a_late_result_changes_nothing(store: Store, to: State) -> None:
    """The epoch rises: else a late "not sent" would undo the person's word."""
    id, (ann, _) = ended(store, ann=State.UNKNOWN, bob=State.SENT)
    store.settle(id, to, wait=0.0)
    assert outbox_rows.epochs(store, [ann.id]) == {ann.id: ann.epoch + 1}
    sender = Sender(store, id)
    sender.step(results=[result(ann, State.SENT)], withdraw=[ann])
    assert not confirmed(store, ann, "ses-1")
    assert not rejected(store, ann)
    assert state_of(store, ann.id) is to


def test_a_message_settled_as_sent_carries_no_error(store: Store) -> None:
    """A report that says "sent" and gives an error is read as a failure."""
    id, (ann, _) = ended(store, ann=State.UNKNOWN, bob=State.SENT)
    store.settle(id, State.SENT, wait=0.0)
    row = outbox_rows.message(store, ann.id)
    assert (row["error_code"], row["error_category"], row["error_message"]) == (None, None, None)
    assert (row["sent_at"], row["unknown_at"]) == (NOON, None)


def test_the_last_unknown_settled_as_sent_makes_the_mailout_sent(store: Store) -> None:
    id, (ann, bob) = ended(store, ann=State.UNKNOWN, bob=State.UNKNOWN)
    assert store.mailout(id).outcome is MailoutOutcome.FAILED
    store.settle(id, State.SENT, wait=0.0, ids=[ann.id])
    assert store.mailout(id).outcome is MailoutOutcome.FAILED
    Sender(store, id).step(results=[result(bob)])
    assert (store.mailout(id).status, store.mailout(id).outcome) == (Status.COMPLETED, MailoutOutcome.SENT)


@pytest.mark.parametrize("way", ["retry", "settle", "late retry", "late withdrawal"])
def test_a_completed_mailout_comes_back_when_a_message_waits_again(store: Store, way: str) -> None:
    """Completed with something pending, nobody would ever send it."""
    id, (ann, _) = ended(store, ann=State.FAILED if way == "retry" else State.UNKNOWN, bob=State.SENT)
    if way == "retry":
        assert store.retry_failed(id) == 1
    elif way == "settle":
        store.settle(id, State.PENDING, wait=0.0)
    elif way == "late retry":
        Sender(store, id).step(results=[result(ann, State.RETRY_SCHEDULED)])
    else:
        Sender(store, id).step(withdraw=[ann])
    found = store.mailout(id)
    assert (found.status, found.outcome, found.completed_at) == (Status.PENDING, None, None)
    assert [due.id for due in queue_rows.due_mailouts(store, stale=300)] == [id]
    store.start(id, "worker")
    sender = Sender(store, id)
    sender.step(results=[result(sender.begin_one())])
    assert store.complete(id).outcome is MailoutOutcome.SENT


def test_a_retry_gives_a_message_all_its_attempts_again(store: Store) -> None:
    id, (ann, _) = ended(store, ann=State.FAILED, bob=State.SENT)
    store.retry_failed(id)
    store.start(id, "worker")
    claimed = Sender(store, id).begin_one()
    assert (claimed.attempt, claimed.number) == (Attempt(ann.id, 2), 1)
    assert outbox_rows.message(store, ann.id)["failed_at"] is None


def test_a_retry_leaves_alone_what_is_wrong_in_itself(store: Store) -> None:
    """A failed validation is permanent."""
    id, _ = ended(store, ann=State.VALIDATION_FAILED, bob=State.FAILED)
    assert store.retry_failed(id) == 1
    assert states(store, id) == {ANN: State.VALIDATION_FAILED, BOB: State.PENDING}


def test_a_cancelled_mailout_keeps_its_failures(store: Store) -> None:
    """Retried, they would only be suppressed, and the list of failures would be lost."""
    id = mailout(store, ANN, BOB)
    sender = Sender(store, id)
    sender.step(results=[result(sender.begin_one(), State.FAILED)])
    store.cancel(id)
    assert store.retry_failed(id) == 0
    assert states(store, id) == {ANN: State.FAILED, BOB: State.SUPPRESSED}


def test_an_event_that_is_faster_than_the_result_stops_a_wrong_retry(store: Store) -> None:
    id = mailout(store, ANN)
    sender = Sender(store, id)
    ann = sender.begin_one().attempt
    sender.step(results=[result(ann, State.RETRY_SCHEDULED, retry_in=0.0)])
    assert confirmed(store, ann, "ses-9")
    assert sender.begin() == []
    row = outbox_rows.message(store, ann.id)
    assert (row["state"], row["ses_message_id"], row["sent_at"]) == ("SENT", "ses-9", NOON)
    assert (row["error_code"], row["next_attempt_at"]) == (None, None)


def test_an_event_of_an_older_attempt_says_nothing_of_this_one(store: Store) -> None:
    id = mailout(store, ANN)
    sender = Sender(store, id)
    old = sender.begin_one().attempt
    sender.step(withdraw=[old])
    new = sender.begin_one().attempt
    assert not confirmed(store, old, "ses-1")
    assert not confirmed(store, Attempt(NOWHERE, 1), "ses-1")
    assert state_of(store, new.id) is State.SENT_ATTEMPT
    sender.step(results=[result(new)])
    assert not rejected(store, old)


def test_a_message_that_never_began_cannot_be_confirmed(store: Store) -> None:
    """An event without a real epoch must not make an unsent message sent."""
    id = mailout(store, ANN)
    (row,) = outbox_rows.messages(store, id)
    assert not confirmed(store, Attempt(row["id"], 0))
    assert states(store, id) == {ANN: State.PENDING}


def test_a_rejected_message_turns_the_mailout_failed(store: Store) -> None:
    id, (ann, _) = ended(store, ann=State.SENT, bob=State.SENT)
    assert store.mailout(id).outcome is MailoutOutcome.SENT
    assert rejected(store, ann)
    assert store.mailout(id).outcome is MailoutOutcome.FAILED
    assert outbox_rows.message(store, ann.id)["error_message"].endswith("rejected it. Bad content")
    assert_ledger(store, id)
    store.retry_failed(id)
    assert outbox_rows.message(store, ann.id)["sent_at"] is None


def test_a_message_that_is_not_there_is_named(store: Store) -> None:
    with pytest.raises(NotFound, match=NOWHERE):
        outbox_rows.message(store, NOWHERE)
