"""Sending, events and unsubscribes at the same time: nobody waits for ever, and the ledger stays right."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from mailout.base.errors import StoreUnavailable
from mailout.base.ids import message_id, uuid_of
from mailout.letters.audience import subscriber_rows
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.feedback.ingest import ingest
from mailout.outbox.feedback.port import Received
from mailout.store import Store
from tests.clocks import FakeClock
from tests.contract.scenes import Sender, assert_ledger, buckets, mailout, result
from tests.contract.stores import StoreFactory
from tests.ses_events import ses_event

PEOPLE = [f"reader{number:03d}@example.org" for number in range(120)]


def test_everything_at_once_neither_deadlocks_nor_miscounts(factory: StoreFactory) -> None:
    """Each locks messages, subscribers and mailouts: in different orders they would block each other."""
    store = factory.make(FakeClock())
    id = mailout(store, *PEOPLE)
    first = Sender(store, id)
    begun = first.begin(len(PEOPLE), buckets=buckets(store.now()))
    attempts = {one.email: one.attempt for one in begun}
    payloads = [
        ses_event(name, email, attempt=attempts[email]) for email in PEOPLE for name in ("Delivery", "Bounce")
    ]
    store.receive_events([Received(uuid_of(payload), "sns", payload) for payload in payloads])

    def record(mine: Store) -> None:
        for start in range(0, len(begun), 6):
            first_of_mine.step(results=[result(one) for one in begun[start : start + 6]])

    def apply(mine: Store) -> None:
        ingest(mine, "any", batch=40)

    def leave(mine: Store) -> None:
        for email in reversed(PEOPLE):
            mine.unsubscribe(email, None)

    def come_back(mine: Store) -> None:
        for email in PEOPLE:
            mine.resubscribe(email, None)

    stores = [factory.open_again() for _ in range(5)]
    first_of_mine = Sender(stores[0], id)
    jobs: list[Callable[[Store], None]] = [record, apply, apply, leave, come_back]
    with ThreadPoolExecutor(len(jobs)) as pool:
        running = [pool.submit(job, mine) for job, mine in zip(jobs, stores, strict=True)]
        failed = [job.exception() for job in running]
    assert not [error for error in failed if isinstance(error, StoreUnavailable)], failed
    assert failed == [None] * len(jobs)
    assert feedback_rows.inbox(store)["waiting"] == 0
    assert_ledger(store, id)
    found = store.mailout(id)
    assert found.ledger.sent == len(PEOPLE)
    assert (found.metrics["delivered"], found.metrics["bounced"]) == (len(PEOPLE), len(PEOPLE))
    told = [
        event
        for email in PEOPLE
        for event in feedback_rows.delivery_events(store, message_id=message_id(id, email))
        if event["event_type"] == "unsubscribe"
    ]
    assert found.metrics.get("unsubscribed", 0) == len(told)
    assert subscriber_rows.subscriber_counts(store)["bounced"] == len(PEOPLE)
