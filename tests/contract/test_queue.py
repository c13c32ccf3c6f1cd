"""The queue: the single source of truth for what is sent next and why anything waits."""

from __future__ import annotations

import pytest

from mailout.base.errors import NotFound, StoreError
from mailout.base.ids import mailout_id, uuid_of
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.model import Content
from mailout.letters.content.port import Kind
from mailout.outbox.delivery.states import State
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import (
    QUEUE_EVERY,
    WAITS_FOR_A_PERSON,
    DeferReason,
    MailoutOutcome,
    NewMailout,
    Status,
)
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import (
    NOWHERE,
    Sender,
    assert_ledger,
    enqueue,
    freeze,
    mailout,
    result,
    states,
    subscribe,
)
from tests.contract.stores import StoreFactory

ANN, BOB = "ann@example.org", "bob@example.org"
TIMED = [reason for reason in DeferReason if reason not in WAITS_FOR_A_PERSON]


def due(store: Store, stale: float = 300.0) -> list[str]:
    return [found.ref for found in queue_rows.due_mailouts(store, stale)]


def test_asking_twice_is_asking_once(store: Store, factory: StoreFactory) -> None:
    """A webhook that comes twice must not become two mailings."""
    new = NewMailout(
        id=mailout_id("page"),
        kind=Kind.NOTION,
        ref="page",
        subject="News",
        company_id="acme",
        list_key="weekly",
        priority=3,
        actor="ann",
    )
    first = store.enqueue(new)
    factory.set_now(NOON + 60)
    again = store.enqueue(NewMailout(id=new.id, kind=Kind.NOTION, ref="page", subject="Edited"))
    assert again == first == store.mailout(new.id)
    for name in ("kind", "ref", "subject", "company_id", "list_key", "is_test", "priority", "actor"):
        assert getattr(first, name) == getattr(new, name)
    assert (first.status, first.created_at, first.ledger.recipients) == (Status.PENDING, NOON, 0)
    assert len(queue_rows.mailouts(store)) == 1


def test_a_batch_of_an_article_goes_out_under_one_id(store: Store) -> None:
    enqueue(store, "one", campaign_tag="spring", send_batch_id="1")
    with pytest.raises(StoreError):
        enqueue(store, "other", campaign_tag="spring", send_batch_id="1")
    enqueue(store, "third", campaign_tag="spring", send_batch_id="2")


@pytest.mark.parametrize("act", ["mailout", "resume", "cancel", "complete"])
def test_a_mailout_that_is_not_there_is_named(store: Store, act: str) -> None:
    with pytest.raises(NotFound, match=NOWHERE):
        getattr(store, act)(NOWHERE)
    with pytest.raises(NotFound, match=NOWHERE):
        store.start(NOWHERE, "worker")


def test_urgent_before_bulk_then_the_older(store: Store, factory: StoreFactory) -> None:
    for minute, (ref, priority) in enumerate([("old", 0), ("new", 0), ("urgent", 5)]):
        factory.set_now(NOON + 60 * minute)
        enqueue(store, ref, priority=priority)
    assert due(store) == ["urgent", "old", "new"]
    assert [found.ref for found in queue_rows.mailouts(store)] == ["urgent", "old", "new"]


def test_the_list_shows_what_is_sent_then_what_waits_then_the_newest_that_ended(
    store: Store, factory: StoreFactory
) -> None:
    for minute, ref in enumerate(["ended", "ended later", "sending", "waiting"]):
        factory.set_now(NOON + 60 * minute)
        enqueue(store, ref)
    store.start(mailout_id("sending"), "worker")
    for ref in ("ended", "ended later"):
        store.cancel(mailout_id(ref))
    assert [found.ref for found in queue_rows.mailouts(store)] == [
        "sending",
        "waiting",
        "ended later",
        "ended",
    ]
    assert [found.ref for found in queue_rows.mailouts(store, statuses=[Status.PENDING])] == ["waiting"]
    assert len(queue_rows.mailouts(store, limit=2)) == 2


def test_a_scheduled_mailout_waits_for_its_time(store: Store, factory: StoreFactory) -> None:
    id = enqueue(store, scheduled_at=NOON + 600)
    assert due(store) == []
    assert store.start(id, "worker").status is Status.PENDING
    factory.set_now(NOON + 600)
    assert due(store) == ["page"]
    started = store.start(id, "worker")
    assert (started.status, started.locked_by, started.started_at) == (
        Status.PROCESSING,
        "worker",
        NOON + 600,
    )
    assert due(store) == []


def test_a_mailout_whose_sender_disappeared_is_due_again(store: Store, factory: StoreFactory) -> None:
    """Prefect may end a flow without cleanup: the store must find the mailout again."""
    id = enqueue(store)
    store.start(id, "first")
    factory.set_now(NOON + 299)
    assert due(store) == []
    factory.set_now(NOON + 301)
    assert due(store) == ["page"]
    again = store.start(id, "second")
    assert (again.locked_by, again.locked_at, again.started_at) == ("second", NOON + 301, NOON)
    assert due(store) == []


@pytest.mark.parametrize("reason", TIMED)
def test_a_timed_defer_ends_by_itself(store: Store, factory: StoreFactory, reason: DeferReason) -> None:
    id = enqueue(store)
    store.start(id, "worker")
    deferred = store.defer(id, reason, NOON + 60, "the sentence for people")
    assert (deferred.status, deferred.defer_reason) == (Status.PENDING, reason)
    assert (deferred.deferred_until, deferred.defer_note) == (NOON + 60, "the sentence for people")
    assert due(store) == []
    assert store.start(id, "worker").status is Status.PENDING
    factory.set_now(NOON + 60)
    assert due(store) == ["page"]
    started = store.start(id, "worker")
    assert (started.defer_reason, started.deferred_until, started.defer_note) == (None, None, None)


@pytest.mark.parametrize("reason", sorted(WAITS_FOR_A_PERSON))
def test_what_waits_for_a_person_waits_until_he_comes(
    store: Store, factory: StoreFactory, reason: DeferReason
) -> None:
    """A machine that replaces a person's hold by a mere wait would send what was stopped."""
    id = enqueue(store)
    store.defer(id, reason, None, "stopped")
    held = store.defer(id, DeferReason.OUTSIDE_HOURS, NOON + 60, "later")
    assert (held.defer_reason, held.deferred_until, held.defer_note) == (reason, None, "stopped")
    factory.set_now(NOON + 10**7)
    assert due(store) == []
    assert store.start(id, "worker").status is Status.PENDING
    resumed = store.resume(id)
    assert (resumed.status, resumed.defer_reason, resumed.defer_note) == (Status.PENDING, None, None)
    assert due(store) == ["page"]


def test_a_persons_hold_replaces_a_wait(store: Store) -> None:
    id = enqueue(store)
    store.defer(id, DeferReason.DAILY_LIMIT, NOON + 60)
    held = store.defer(id, DeferReason.PAUSED, None)
    assert (held.defer_reason, held.deferred_until) == (DeferReason.PAUSED, None)


@pytest.mark.parametrize("reason", list(DeferReason))
def test_those_that_wait_for_a_person_and_they_alone_have_no_time(store: Store, reason: DeferReason) -> None:
    """A wait without an end is a mailout that is forgotten."""
    id = enqueue(store)
    with pytest.raises(StoreError):
        store.defer(id, reason, NOON + 60 if reason in WAITS_FOR_A_PERSON else None)
    assert store.mailout(id).defer_reason is None


def test_what_has_ended_can_be_neither_deferred_nor_started_nor_resumed(store: Store) -> None:
    ended = {"cancelled": enqueue(store, "cancelled"), "completed": mailout(store, ref="completed")}
    store.cancel(ended["cancelled"])
    store.complete(ended["completed"])
    for id in ended.values():
        before = store.mailout(id)
        store.defer(id, DeferReason.PAUSED, None)
        store.resume(id)
        store.start(id, "worker")
        assert store.mailout(id) == before
    assert store.complete(ended["cancelled"]).status is Status.CANCELLED
    assert store.cancel(ended["completed"]).status is Status.COMPLETED
    assert due(store) == []


def test_a_mailout_completes_only_when_nothing_waits_and_nothing_is_in_the_air(store: Store) -> None:
    """The ledger balances."""
    subscribe(store, ANN, BOB)
    id = enqueue(store)
    assert store.complete(id).status is Status.PENDING
    freeze(store, id)
    store.start(id, "worker")
    sender = Sender(store, id)
    ann = sender.begin_one()
    assert store.complete(id).status is Status.PROCESSING
    sender.step(results=[result(ann)])
    assert store.complete(id).status is Status.PROCESSING
    bob = sender.begin_one()
    assert store.complete(id).status is Status.PROCESSING
    sender.step(results=[result(bob)])
    done = store.complete(id)
    assert (done.status, done.outcome, done.completed_at) == (Status.COMPLETED, MailoutOutcome.SENT, NOON)


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (State.SENT, MailoutOutcome.SENT),
        (State.FAILED, MailoutOutcome.FAILED),
        (State.UNKNOWN, MailoutOutcome.FAILED),
        (State.VALIDATION_FAILED, MailoutOutcome.FAILED),
    ],
)
def test_failures_left_make_a_failed_mailout(store: Store, end: State, outcome: MailoutOutcome) -> None:
    id = mailout(store, ANN, BOB)
    store.unsubscribe(BOB, None)
    sender = Sender(store, id)
    sender.step(results=[result(row, end) for row in sender.begin(2)])
    assert store.complete(id).outcome is outcome


def test_a_completed_mailout_waits_for_nothing(store: Store) -> None:
    """Else it would come back under an old hold when its failures are retried."""
    id = mailout(store, ANN)
    sender = Sender(store, id)
    ann = sender.begin_one()
    store.defer(id, DeferReason.TRANSIENT_ERRORS, NOON + 60)
    sender.step(results=[result(ann)])
    done = store.complete(id)
    assert done.status is Status.COMPLETED
    assert (done.defer_reason, done.deferred_until, done.defer_note) == (None, None, None)


def test_a_cancel_suppresses_what_waits_and_leaves_what_has_left(store: Store) -> None:
    id = mailout(store, ANN, BOB, "cat@example.org")
    sender = Sender(store, id)
    ann, bob = sender.begin(2)
    sender.step(results=[result(ann)])
    cancelled = store.cancel(id)
    assert (cancelled.status, cancelled.completed_at) == (Status.CANCELLED, NOON)
    assert list(states(store, id).values()) == [State.SENT, State.SENT_ATTEMPT, State.SUPPRESSED]
    sender.step(withdraw=[bob.attempt])
    assert states(store, id)[BOB] is State.SUPPRESSED
    assert store.cancel(id).completed_at == NOON
    assert_ledger(store, id)


def test_what_is_sent_is_what_was_frozen_first(store: Store) -> None:
    """Editing the page while it is being sent must not give half the audience another letter."""
    id = enqueue(store)
    first = store.mailout(id).content_hash
    other = keep_content(store, Content("Edited", "<p>Edited</p>", "Edited"))
    again = store.set_content(id, other, "Edited")
    assert (again.content_hash, again.subject) == (first, "News")


def test_content_that_is_not_kept_cannot_be_sent(store: Store) -> None:
    store.enqueue(NewMailout(id=mailout_id("bare"), kind=Kind.NOTION, ref="bare"))
    with pytest.raises(StoreError):
        store.set_content(mailout_id("bare"), "no-such-hash", "News")


def test_test_runs_are_counted_by_page(store: Store) -> None:
    assert queue_rows.next_test_run(store, "page") == 1
    enqueue(store, "page", id=uuid_of("run-1"), is_test=True)
    enqueue(store, "page", id=uuid_of("real"))
    enqueue(store, "other", id=uuid_of("other-1"), is_test=True)
    assert queue_rows.next_test_run(store, "page") == 2


def test_a_mailout_keeps_where_answers_go(store: Store) -> None:
    """Else readers' answers to a letter of its own go to the office."""
    new = NewMailout(
        id=mailout_id("reply.md"), kind=Kind.MARKDOWN, ref="reply.md", reply_to="ida@example.org"
    )
    assert store.enqueue(new).reply_to == "ida@example.org"


# ── a clock that was ahead and is set right ──


@pytest.mark.parametrize(
    ("reason", "most"),
    [
        (DeferReason.TRANSIENT_ERRORS, 3600),
        (DeferReason.QUOTA_EXHAUSTED, 3600),
        (DeferReason.RATE_PER_HOUR, 3600),
        (DeferReason.DAILY_LIMIT, 7 * 86_400),
        (DeferReason.OUTSIDE_HOURS, 7 * 86_400),
    ],
)
def test_a_wait_that_is_longer_than_its_reason_can_make_it_is_over(
    store: Store, reason: DeferReason, most: float
) -> None:
    """A pause of a minute became thirty days, since the clock had been ahead by so much."""
    id = enqueue(store, "page")
    store.defer(id, reason, NOON + most)
    assert due(store) == []
    assert store.start(id, "worker").status is Status.PENDING
    store.defer(id, reason, NOON + 30 * 86_400)
    assert due(store) == ["page"]
    assert store.start(id, "worker").status is Status.PROCESSING


def test_a_sender_that_was_heard_of_in_the_future_is_not_waited_for(
    store: Store, factory: StoreFactory
) -> None:
    """It was killed while the clock was nine hours ahead: for nine hours it was “being sent”."""
    factory.set_now(NOON + 9 * 3600)
    id = enqueue(store, "page")
    store.start(id, "worker")
    factory.set_now(NOON)
    assert due(store) == ["page"]
    found = store.mailout(id)
    assert found.goes_on_by(NOON, 300.0) == NOON + QUEUE_EVERY
    assert found.goes_on_by(NOON + 9 * 3600 - 60, 300.0) is None  # a small step is none
