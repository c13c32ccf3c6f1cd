"""Sessions: fencing, lost replies, leases, and how a sender ends."""

from __future__ import annotations

from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.states import State
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import (
    GRACE,
    LEASE,
    NOWHERE,
    Sender,
    assert_ledger,
    mailout,
    result,
    state_of,
    states,
)
from tests.contract.stores import StoreFactory

ANN, BOB, CAT = "ann@example.org", "bob@example.org", "cat@example.org"


def test_a_step_with_a_number_that_was_used_begins_nothing(store: Store) -> None:
    """A late copy of a lost request would begin messages that nobody sends."""
    id = mailout(store, ANN, BOB)
    sender = Sender(store, id)
    sender.step(want=1)
    sender.step()
    for late in (1, 2):
        reply = sender.step(n=late, want=5)
        assert (reply.fenced, reply.rows) == (True, ())
    assert store.mailout(id).ledger.in_flight == 1


def test_a_reaped_session_is_fenced_and_its_results_still_count(store: Store, factory: StoreFactory) -> None:
    """The mail has left: forgetting its result would leave a person to settle it."""
    id = mailout(store, ANN, BOB, CAT)
    sender = Sender(store, id)
    ann, bob, _ = sender.begin(3)
    factory.set_now(NOON + LEASE + GRACE + 1)
    assert store.reap(GRACE) == 3
    reply = sender.step(want=5, results=[result(ann)], withdraw=[bob.attempt])
    assert (reply.fenced, reply.rows) == (True, ())
    assert states(store, id) == {ANN: State.SENT, BOB: State.PENDING, CAT: State.UNKNOWN}
    assert_ledger(store, id)


def test_a_session_that_nobody_opened_is_fenced(store: Store) -> None:
    id = mailout(store, ANN)
    stranger = Sender(store, id)
    stranger.session = NOWHERE
    assert stranger.step(want=1).fenced
    assert outbox_rows.sender_session(store, stranger.session) is None


def test_after_a_lost_reply_recover_tells_what_is_begun(store: Store) -> None:
    """Without it, messages begun by the lost step would stay in the air until the reap, as unknown."""
    id = mailout(store, ANN, BOB, CAT)
    sender = Sender(store, id)
    (known,) = sender.begin(1)
    sender.step(want=1)  # its reply is lost
    recovered = sender.step(recover=True).recovered
    unknown_to_it = [attempt for attempt in recovered if attempt != known.attempt]
    assert len(recovered) == 2
    sender.step(results=[result(known)], withdraw=unknown_to_it)
    assert states(store, id) == {ANN: State.SENT, BOB: State.PENDING, CAT: State.PENDING}
    assert sender.step(recover=True).recovered == []


def test_recover_does_not_tell_what_the_same_step_records_or_begins(store: Store) -> None:
    """A sender withdraws what it does not know: it must not hear of what it is just being given."""
    id = mailout(store, ANN, BOB)
    sender = Sender(store, id)
    (ann,) = sender.begin(1)
    reply = sender.step(recover=True, results=[result(ann)], want=1)
    assert (reply.recovered, [row.email for row in reply.rows]) == ([], [BOB])


def test_recover_tells_only_of_its_own_session(store: Store) -> None:
    id = mailout(store, ANN, BOB)
    one, other = Sender(store, id), Sender(store, id)
    one.begin(1)
    (bob,) = other.begin(1)
    assert other.step(recover=True).recovered == [bob.attempt]


def test_the_store_remembers_the_last_step_of_a_session(store: Store) -> None:
    """A restored backup shows by it: the machine's journal has gone further."""
    id = mailout(store, ANN)
    sender = Sender(store, id)
    assert _steps_made(store, sender) == 0
    sender.step()
    sender.step()
    assert _steps_made(store, sender) == 2


def test_doubts_are_what_a_session_left_open(store: Store, factory: StoreFactory) -> None:
    id = mailout(store, ANN, BOB)
    sender = Sender(store, id)
    ann, bob = sender.begin(2)
    sender.step(results=[result(ann, State.UNKNOWN)])
    assert outbox_rows.open_attempts(store, sender.session) == [ann.attempt, bob.attempt]
    sender.step(results=[result(ann), result(bob)])
    assert outbox_rows.open_attempts(store, sender.session) == []
    assert outbox_rows.epochs(store, [ann.attempt.id, bob.attempt.id, NOWHERE]) == {
        ann.attempt.id: 1,
        bob.attempt.id: 1,
    }


def test_the_last_step_records_begins_nothing_and_ends_the_session(store: Store) -> None:
    id = mailout(store, ANN, BOB)
    sender = Sender(store, id)
    ann = sender.begin_one()
    reply = sender.step(results=[result(ann)], want=5, close=True)
    assert (reply.fenced, list(reply.rows)) == (False, [])
    assert reply.ledger.sent == 1
    assert sender.step(want=1).fenced


def test_a_closing_session_leaves_nothing_in_the_air(store: Store) -> None:
    """Else its messages stay in flight and the mailout never completes."""
    id = mailout(store, ANN)
    sender = Sender(store, id)
    claimed = sender.begin_one()
    reply = sender.step(close=True)
    assert reply.ledger.in_flight == 0
    assert state_of(store, claimed.attempt.id) is State.UNKNOWN
    sender.step(results=[result(claimed)])  # fenced, and yet its late answer counts
    assert state_of(store, claimed.attempt.id) is State.SENT


def test_a_session_is_reaped_after_its_lease_and_the_grace_not_before(
    store: Store, factory: StoreFactory
) -> None:
    """Early: a slow sender is taken for dead. Never: its messages hang."""
    id = mailout(store, ANN, BOB)
    sender, alive = Sender(store, id), Sender(store, id)
    sender.begin(1)
    factory.set_now(NOON + 10)
    sender.step()  # renews the lease
    factory.set_now(NOON + 10 + LEASE + GRACE - 1)
    alive.begin(1)
    assert store.reap(GRACE) == 0
    factory.set_now(NOON + 10 + LEASE + GRACE + 1)
    assert store.reap(GRACE) == 1
    assert store.reap(GRACE) == 0
    assert states(store, id) == {ANN: State.UNKNOWN, BOB: State.SENT_ATTEMPT}
    assert not alive.step().fenced
    assert_ledger(store, id)


def _steps_made(store: Store, sender: Sender) -> int:
    session = outbox_rows.sender_session(store, sender.session)
    assert session is not None
    return session["step_no"]
