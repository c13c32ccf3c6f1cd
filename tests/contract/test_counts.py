"""What Prometheus is told: counts that only grow, and how everything stands."""

from __future__ import annotations

import threading

from mailout.insight.metrics import metric_rows
from mailout.outbox.delivery.states import Column, State
from mailout.outbox.feedback.port import Received
from mailout.outbox.queue.port import Recipient
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import ACCOUNT, NOWHERE, Sender, enqueue, handed_mailout, mailout, result
from tests.contract.stores import StoreFactory

SENT = ("x_total", 'state="SENT"')
ODD = ("x_total", 'reason="a \\"b\\" \\\\ c\\n{}"')


def test_what_processes_count_adds_up(store: Store, factory: StoreFactory) -> None:
    assert metric_rows.counts(store) == {}
    store.add_counts({SENT: 2, ODD: 0.25})
    factory.open_again().add_counts({SENT: 3})
    assert metric_rows.counts(store) == {SENT: 5, ODD: 0.25}
    store.add_counts({})
    assert metric_rows.counts(store) == {SENT: 5, ODD: 0.25}


def test_counts_added_at_the_same_time_are_all_there(store: Store, factory: StoreFactory) -> None:
    """Senders flush when they like: none of them may wait for ever, none may overwrite another."""
    others = [factory.open_again() for _ in range(4)]
    samples = [("x_total", f'of="{n}"') for n in range(10)]

    def add(nth: int) -> None:
        ordered = samples if nth % 2 else list(reversed(samples))
        for _ in range(10):
            others[nth].add_counts(dict.fromkeys(ordered, 1.0))

    threads = [threading.Thread(target=add, args=[nth]) for nth in range(len(others))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert metric_rows.counts(store) == dict.fromkeys(samples, 40.0)


def test_an_empty_store_stands_still(store: Store) -> None:
    vitals = metric_rows.vitals(store, ACCOUNT)
    assert (dict(vitals.queue), vitals.oldest_event_at, vitals.sessions) == ({}, None, 0)
    assert vitals.messages == {column.value: 0 for column in Column}
    assert vitals.pace.factor_now(NOON) == 1


def test_how_the_queue_stands_is_the_sum_of_its_ledgers(store: Store) -> None:
    """Done ones do not count: their messages wait for nobody."""
    done = mailout(store, "ann@example.org", ref="done", list_key="one")
    sender = Sender(store, done)
    sender.step(results=[result(sender.begin_one())], close=True)
    store.complete(done)
    half = mailout(store, "bob@example.org", "cat@example.org", ref="half", list_key="two")
    sender = Sender(store, half)
    sender.step(results=[result(sender.begin_one(), State.FAILED)])
    enqueue(store, "waits")
    vitals = metric_rows.vitals(store, ACCOUNT)
    assert vitals.queue == {"PROCESSING": 1, "PENDING": 1}
    assert {name: n for name, n in vitals.messages.items() if n} == {"pending": 1, "failed": 1}


def test_a_sender_is_alive_until_its_lease_ends(store: Store, factory: StoreFactory) -> None:
    id = mailout(store, "ann@example.org")
    closed, living = Sender(store, id), Sender(store, id, lease=100.0)
    Sender(store, id, lease=10.0)
    closed.step(close=True)
    living.step()
    assert metric_rows.vitals(store, ACCOUNT).sessions == 2
    factory.set_now(NOON + 50)
    assert metric_rows.vitals(store, ACCOUNT).sessions == 1


def test_the_oldest_event_that_waits_tells_the_lag(store: Store, factory: StoreFactory) -> None:
    store.receive_events([Received("1", "sns", "{}")])
    factory.set_now(NOON + 30)
    store.receive_events([Received("2", "sns", "{}")])
    assert metric_rows.vitals(store, ACCOUNT).oldest_event_at == NOON


def test_a_throttled_account_is_seen_to_be_slower(store: Store) -> None:
    id = mailout(store, "ann@example.org", "bob@example.org")
    Sender(store, id).step(rate=10, throttled=True, want=1)
    assert metric_rows.vitals(store, ACCOUNT).pace.factor_now(NOON) < 1
    assert metric_rows.vitals(store, "another").pace.factor_now(NOON) == 1


def test_a_step_tells_whom_it_passed_over(store: Store) -> None:
    """Nobody else can: they are never begun."""
    id = mailout(store, "ann@example.org", "bob@example.org", "cat@example.org")
    store.unsubscribe("ann@example.org", None)
    reply = Sender(store, id).step(want=3)
    assert (len(reply.rows), reply.suppressed, reply.refused) == (2, 1, 0)
    strangers = [Recipient("dan@example.org", recipient_id=NOWHERE), Recipient("eve@example.org")]
    reply = Sender(store, handed_mailout(store, *strangers, ref="handed", is_test=True)).step(want=3)
    assert (len(reply.rows), reply.suppressed, reply.refused) == (1, 0, 1)


def test_a_claim_names_the_request_that_asked_for_it(store: Store, factory: StoreFactory) -> None:
    """Whoever asked for a single mail follows it through the log by that."""
    id = mailout(store, "ann@example.org", "bob@example.org")
    factory.raw("UPDATE email_outbox SET request_id = 'asked' WHERE email = 'bob@example.org'")
    assert [claimed.request_id for claimed in Sender(store, id).begin(2)] == [None, "asked"]
