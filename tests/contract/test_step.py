"""`step`: what it gives, and what results and withdrawals do. (Faults of the sender: test_sessions.)"""

from __future__ import annotations

import pytest

from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.protocol import Attempt
from mailout.outbox.delivery.states import State
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.port import Recipient
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import (
    NOWHERE,
    Sender,
    assert_ledger,
    handed_mailout,
    mailout,
    result,
    states,
    subscribe,
)
from tests.contract.stores import StoreFactory

ANN, BOB, CAT = "ann@example.org", "bob@example.org", "cat@example.org"


# ── what a step gives ──


def test_a_claim_carries_what_the_mail_needs_in_the_order_of_addresses(store: Store) -> None:
    """A sender has nothing but this row to build the mail from."""
    subscribe(store, CAT, ANN)
    subscribe(store, BOB, from_name="Bob's shop")
    id = mailout(store, company_id="acme")
    rows = Sender(store, id).begin(10)
    assert [row.email for row in rows] == [ANN, BOB, CAT]
    assert [row.from_name for row in rows] == [None, "Bob's shop", None]
    for row in rows:
        assert (row.attempt.epoch, row.number, row.slot) == (1, 1, None)
        assert (row.mailout_id, row.company_id, row.variables) == (id, "acme", {})
        assert row.content_hash == store.mailout(id).content_hash
        assert outbox_rows.message(store, row.attempt.id)["email"] == row.email


def test_what_is_begun_is_durable_before_the_reply(store: Store, factory: StoreFactory) -> None:
    """The intent is on disk before anything is sent."""
    id = mailout(store, ANN)
    claimed = Sender(store, id).begin_one()
    row = outbox_rows.message(factory.open_again(), claimed.attempt.id)
    assert (row["state"], row["epoch"], row["attempts"], row["attempt_at"]) == ("SENT_ATTEMPT", 1, 1, NOON)


def test_a_message_is_begun_by_one_session_only(store: Store, factory: StoreFactory) -> None:
    id = mailout(store, ANN, BOB, CAT)
    first, second = Sender(store, id), Sender(factory.open_again(), id)
    assert [row.email for row in first.begin(2)] == [ANN, BOB]
    assert [row.email for row in second.begin(3)] == [CAT]


def test_the_reply_tells_the_ledger_and_the_stores_time(store: Store, factory: StoreFactory) -> None:
    id = mailout(store, ANN, BOB)
    factory.set_now(NOON + 7)
    reply = Sender(store, id).step(want=1)
    assert reply.now == NOON + 7
    assert reply.ledger == store.mailout(id).ledger
    assert (reply.ledger.pending, reply.ledger.in_flight) == (1, 1)


def test_a_step_shows_that_somebody_sends(store: Store, factory: StoreFactory) -> None:
    """A mailout in somebody's hands must not be started a second time as stale."""
    id = mailout(store, ANN)
    factory.set_now(NOON + 500)
    Sender(store, id).step()
    assert store.mailout(id).locked_at == NOON + 500
    assert queue_rows.due_mailouts(store, stale=300) == []


def test_the_cursor_is_where_the_next_claim_begins(store: Store) -> None:
    id = mailout(store, ANN, BOB, CAT)
    sender = Sender(store, id)
    first = sender.begin_one()
    sender.step(withdraw=[first.attempt])
    assert [row.email for row in sender.begin(1, cursor=first.seq)] == [BOB]
    assert [row.email for row in sender.begin(1)] == [ANN]


def test_a_sessions_messages_are_those_of_its_mailout(store: Store) -> None:
    one, other = mailout(store, ANN, ref="one"), mailout(store, ref="other")
    rows = Sender(store, one).begin(10)
    assert [row.mailout_id for row in rows] == [one]
    assert store.mailout(other).ledger.pending == 1


# ── retries ──


def test_a_retry_waits_for_its_time_and_not_longer(store: Store, factory: StoreFactory) -> None:
    """Too early annoys the provider; never would lose the message."""
    id = mailout(store, ANN)
    sender = Sender(store, id)
    claimed = sender.begin_one()
    sender.step(results=[result(claimed, State.RETRY_SCHEDULED, retry_in=30.0)])
    factory.set_now(NOON + 29.9)
    reply = sender.step(want=1)
    assert (reply.rows, reply.next_due_at) == ([], NOON + 30)
    factory.set_now(NOON + 30)
    again = sender.begin_one()
    assert (again.attempt, again.number) == (Attempt(claimed.attempt.id, 2), 2)


def test_next_due_is_now_while_something_waits_and_none_when_nothing_does(store: Store) -> None:
    """A sender that is told nothing would wait for ever, or spin."""
    id = mailout(store, ANN, BOB)
    sender = Sender(store, id)
    ann, bob = sender.begin(2)
    assert sender.step(want=1).next_due_at is None
    back = result(bob, State.PENDING, give_back=True, retry_in=5.0)
    reply = sender.step(want=1, results=[result(ann), back])
    assert (reply.rows, reply.next_due_at) == ([], NOON + 5)
    subscribe(store, CAT)
    other = mailout(store, ref="other")
    assert Sender(store, other).step(want=1, cursor=10**6).next_due_at == NOON


# ── results and withdrawals ──


def test_a_result_is_written_down_with_all_it_knows(store: Store) -> None:
    id = mailout(store, ANN)
    sender = Sender(store, id)
    claimed = sender.begin_one()
    sender.step(
        results=[
            result(
                claimed,
                State.FAILED,
                code="INVALID_RECIPIENT",
                category="PERMANENT_ERROR",
                message="No such user",
                original_code="MessageRejected",
                duration_ms=31,
            )
        ]
    )
    row = outbox_rows.message(store, claimed.attempt.id)
    assert row["error_code"] == "INVALID_RECIPIENT"
    assert row["error_category"] == "PERMANENT_ERROR"
    assert row["error_message"] == "No such user"
    assert (row["duration_ms"], row["failed_at"]) == (0, NOON)  # from RECEIVED to the end


@pytest.mark.parametrize(("state", "column"), [(State.SENT, "sent_at"), (State.FAILED, "failed_at")])
def test_a_result_that_had_to_wait_tells_when_it_was_known(
    store: Store, factory: StoreFactory, state: State, column: str
) -> None:
    """Else a thousand messages of one second all seem to have left when the next step was taken."""
    sender = Sender(store, mailout(store, ANN, BOB))
    first, second = sender.begin(2)
    factory.set_now(NOON + 5.0)
    sender.step(results=[result(first, state, age=1.5), result(second, state, age=60.0)])
    moments = [outbox_rows.message(store, one.attempt.id).get(column) for one in (first, second)]
    assert moments == [NOON + 3.5, NOON]  # never before its attempt


def test_results_count_once_however_often_they_come(store: Store) -> None:
    """A sender repeats its results until it hears that they are recorded."""
    id = mailout(store, ANN, BOB)
    sender = Sender(store, id)
    done = [result(row) for row in sender.begin(2)]
    for _ in range(3):
        sender.step(results=done)
    assert store.mailout(id).ledger.sent == 2
    assert_ledger(store, id)


def test_a_result_with_an_old_epoch_changes_nothing(store: Store) -> None:
    """The end of an old attempt would be taken for the end of the one that is in the air."""
    id = mailout(store, ANN)
    sender = Sender(store, id)
    old = sender.begin_one()
    sender.step(withdraw=[old.attempt])
    new = sender.begin_one()
    for state in (State.SENT, State.FAILED, State.RETRY_SCHEDULED, State.UNKNOWN):
        sender.step(results=[result(old, state)])
    sender.step(withdraw=[old.attempt])
    row = outbox_rows.message(store, new.attempt.id)
    assert (row["state"], row["epoch"], row["attempts"]) == ("SENT_ATTEMPT", 2, 1)


def test_a_result_for_a_message_that_is_not_there_is_ignored(store: Store) -> None:
    """A journal of another store must not stop this one."""
    id = mailout(store, ANN)
    reply = Sender(store, id).step(results=[result(Attempt(NOWHERE, 1))])
    assert not reply.fenced
    assert_ledger(store, id)


def test_a_withdrawal_leaves_no_trace_of_the_attempt(store: Store) -> None:
    id = mailout(store, ANN)
    sender = Sender(store, id)
    sender.step(withdraw=[sender.begin_one().attempt])
    (row,) = outbox_rows.messages(store, id)
    assert (row["state"], row["attempts"], row["epoch"]) == ("PENDING", 0, 1)
    assert (row["attempt_at"], row["next_attempt_at"]) == (None, None)


def test_a_withdrawn_second_attempt_keeps_the_first(store: Store, factory: StoreFactory) -> None:
    """Else a message with a transient error would have its attempts for ever before it."""
    id = mailout(store, ANN)
    sender = Sender(store, id)
    sender.step(results=[result(sender.begin_one(), State.RETRY_SCHEDULED, retry_in=1.0)])
    factory.set_now(NOON + 1)
    sender.step(withdraw=[sender.begin_one().attempt])
    assert sender.begin_one().number == 2


def test_a_message_given_back_waits_with_its_reason_and_all_its_attempts(store: Store) -> None:
    """Throttled or out of quota: not the message's fault."""
    id = mailout(store, ANN)
    sender = Sender(store, id)
    back = result(
        sender.begin_one(),
        State.PENDING,
        give_back=True,
        retry_in=2.0,
        code="SES_THROTTLED",
        message="Slower",
    )
    sender.step(results=[back])
    (row,) = outbox_rows.messages(store, id)
    assert (row["state"], row["attempts"], row["next_attempt_at"]) == ("PENDING", 0, NOON + 2)
    assert (row["error_code"], row["error_message"]) == ("SES_THROTTLED", "Slower")


# ── who leaves ──


@pytest.mark.parametrize("status", ["unsubscribed", "bounced"])
def test_who_leaves_before_their_turn_is_not_written_to(store: Store, status: str) -> None:
    """Mail after an unsubscribe is what subscribers (and the law) forgive least."""
    id = mailout(store, ANN, BOB)
    subscribe(store, ANN, status=status)
    assert [row.email for row in Sender(store, id).begin(10)] == [BOB]
    assert states(store, id)[ANN] is State.SUPPRESSED
    assert_ledger(store, id)


def test_who_leaves_between_two_attempts_gets_no_second_one(store: Store, factory: StoreFactory) -> None:
    id = mailout(store, ANN)
    sender = Sender(store, id)
    sender.step(results=[result(sender.begin_one(), State.RETRY_SCHEDULED, retry_in=1.0)])
    store.unsubscribe(ANN, None)
    factory.set_now(NOON + 2)
    assert sender.begin() == []
    assert states(store, id) == {ANN: State.SUPPRESSED}


def test_who_leaves_the_list_is_not_written_to_for_that_list(store: Store, factory: StoreFactory) -> None:
    id = mailout(store, ANN, BOB, list_key="weekly")
    factory.raw(
        "UPDATE subscriptions SET unsubscribed_at = ? WHERE email = ? AND list_key = ?", (NOON, ANN, "weekly")
    )
    assert [row.email for row in Sender(store, id).begin(10)] == [BOB]
    other = mailout(store, ref="to everybody")
    assert [row.email for row in Sender(store, other).begin(10)] == [ANN, BOB]


def test_a_step_that_only_suppresses_asks_for_another(store: Store) -> None:
    """The sender must not take an empty reply for the end."""
    id = mailout(store, ANN, BOB)
    store.unsubscribe(ANN, None)
    sender = Sender(store, id)
    reply = sender.step(want=1)
    assert (list(reply.rows), reply.next_due_at) == ([], NOON)
    assert sender.begin_one().email == BOB


def test_a_test_run_reaches_people_who_are_no_subscribers(store: Store) -> None:
    """TEST_EMAILS are the editors, not the audience."""
    id = handed_mailout(store, Recipient("editor@example.org"), is_test=True)
    assert [row.email for row in Sender(store, id).begin(5)] == ["editor@example.org"]
