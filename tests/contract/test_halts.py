"""Why a step begins nothing although something is due."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mailout.base.ids import transactional_id
from mailout.letters.content.model import Content
from mailout.outbox.delivery.protocol import Halt
from mailout.outbox.delivery.single_mails import OURS, SingleMail
from mailout.outbox.delivery.states import State
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import DeferReason
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import (
    Sender,
    assert_ledger,
    enqueue,
    freeze,
    mailout,
    result,
    states,
    subscribe,
)

ANN, BOB, CAT = "ann@example.org", "bob@example.org", "cat@example.org"


def test_stopping_a_machine_leaves_the_others_at_work(store: Store) -> None:
    """A machine that is updated must not end what another one is sending, be it the same mailout."""
    id = mailout(store, ANN, BOB, CAT)
    here, there, similar = (Sender(store, id, worker=name) for name in ("web-1", "db-1", "web-2-17"))
    Sender(store, id, lease=-1.0, worker="web-3")  # it has died: nobody waits for its end
    assert store.stop_machine("web") == 1
    assert [sender.step(want=1).halt for sender in (here, there, similar)] == [Halt.STOP, None, None]
    here.step(close=True)
    assert store.stop_machine("web") == 0
    assert store.stop_machine("web-2") == 1


def test_a_stopped_session_still_records(store: Store) -> None:
    id = mailout(store, ANN, BOB)
    sender = Sender(store, id, worker="web-1")
    ann = sender.begin_one()
    store.stop_machine("web")
    reply = sender.step(results=[result(ann)], want=1)
    assert (reply.halt, list(reply.rows), reply.ledger.sent) == (Halt.STOP, [], 1)


@pytest.mark.parametrize(
    ("reason", "until", "halt"),
    [
        (DeferReason.PAUSED, None, Halt.PAUSED),
        (DeferReason.REPUTATION, None, Halt.DEFERRED),
        (DeferReason.RATE_PER_HOUR, NOON + 3600, Halt.DEFERRED),
    ],
)
def test_a_deferred_mailout_begins_nothing(
    store: Store, reason: DeferReason, until: float | None, halt: Halt
) -> None:
    """A person who pauses a mailout expects that it stops, also under a sender that is at work."""
    id = mailout(store, ANN, BOB)
    sender = Sender(store, id)
    ann = sender.begin_one()
    store.defer(id, reason, until)
    reply = sender.step(want=1, results=[result(ann)])
    assert (reply.halt, list(reply.rows)) == (halt, [])
    assert states(store, id) == {ANN: State.SENT, BOB: State.PENDING}
    store.resume(id)
    store.start(id, "worker")
    assert [row.email for row in sender.begin()] == [BOB]


def test_when_everything_is_paused_only_mails_of_our_own_leave(store: Store) -> None:
    """Whoever looks after it hears of trouble; nobody else gets anything."""

    def hand_in(company: str) -> str:
        content = Content("News", "<p>News</p>", "News")
        id = transactional_id(company, "a")
        mail = SingleMail(id=id, company_id=company, request_id="a", email=ANN, content=content)
        store.accept_single_mails([replace(mail, is_rehearsal=True)])
        return id

    hand_in("acme")
    own = hand_in(OURS)
    store.pause_all(True)
    sender = Sender(store, None)
    reply = sender.step(want=5)
    assert ([row.attempt.id for row in reply.rows], reply.halt) == ([own], None)
    held = sender.step(want=5)  # it waits for its slot, and is not taken back
    assert (list(held.rows), held.halt) == ([], None)
    reply = sender.step(want=5, results=[result(reply.rows[0])])
    assert (list(reply.rows), reply.halt) == ([], Halt.ALL_PAUSED)
    store.pause_all(False)
    assert [row.company_id for row in sender.begin(5)] == ["acme"]


def test_a_sender_is_asked_to_stop_also_while_everything_is_paused(store: Store) -> None:
    """Else it would wait for the end of the pause, and be killed."""
    sender = Sender(store, None, worker="web-1")
    store.pause_all(True)
    store.stop_machine("web")
    assert sender.step(want=1).halt is Halt.STOP


def test_when_everything_is_paused_nobody_begins(store: Store) -> None:
    id = mailout(store, ANN)
    sender = Sender(store, id)
    assert not queue_rows.all_paused(store)
    store.pause_all(True)
    store.pause_all(True)
    assert queue_rows.all_paused(store)
    assert sender.step(want=1).halt is Halt.ALL_PAUSED
    store.pause_all(False)
    assert sender.begin_one().email == ANN


def test_a_cancelled_mailout_begins_nothing_and_keeps_nothing_waiting(store: Store) -> None:
    """What comes back from a sender after the cancel must not wait for ever."""
    id = mailout(store, ANN, BOB, CAT)
    sender = Sender(store, id)
    ann, bob = sender.begin(2)
    store.cancel(id)
    reply = sender.step(
        want=1,
        results=[result(ann, State.RETRY_SCHEDULED, retry_in=1.0)],
        withdraw=[bob.attempt],
    )
    assert (reply.halt, list(reply.rows)) == (Halt.CANCELLED, [])
    assert set(states(store, id).values()) == {State.SUPPRESSED}
    assert reply.ledger.suppressed == 3
    assert_ledger(store, id)


def test_nothing_is_begun_before_the_audience_is_whole(store: Store) -> None:
    """Else the order of sending would depend on who was quicker."""
    subscribe(store, ANN, BOB)
    id = enqueue(store)
    store.freeze_subscribers(id, chunk=1)
    store.start(id, "worker")
    sender = Sender(store, id)
    reply = sender.step(want=5)
    assert (reply.halt, list(reply.rows)) == (Halt.NOT_FROZEN, [])
    freeze(store, id)
    assert len(sender.begin(5)) == 2
