"""What was asked for over HTTP is kept until it was answered, and ten times in a minute is once."""

from __future__ import annotations

import pytest

from mailout.base.errors import NotFound
from mailout.base.ids import mailout_id
from mailout.letters.content.port import Kind
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import NewMailout
from mailout.outbox.queue.port import Request, RequestKind
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.stores import StoreFactory

PAGE = Request("a-page", RequestKind.IF_READY)


def test_a_request_is_kept_until_it_is_answered(store: Store) -> None:
    """Prefect may be away for a day: the request must not be."""
    assert queue_rows.asked(store, waiting=0) == []
    assert store.ask(PAGE, repeat=60)
    assert queue_rows.asked(store, waiting=0) == [PAGE]
    store.answered(PAGE)
    assert queue_rows.asked(store, waiting=0) == []
    store.answered(PAGE)


def test_asked_ten_times_in_a_minute_it_is_one_request(store: Store, factory: StoreFactory) -> None:
    page = Request("a-page", RequestKind.TEST)
    assert [store.ask(page, repeat=60) for _ in range(10)] == [True] + [False] * 9
    assert queue_rows.asked(store, waiting=0) == [page]
    store.answered(page)
    assert not store.ask(page, repeat=60), "it would be another mail"
    assert queue_rows.asked(store, waiting=0) == []
    factory.set_now(NOON + 60)
    assert store.ask(page, repeat=60)
    assert queue_rows.asked(store, waiting=0) == [page]


@pytest.mark.parametrize("how", [RequestKind.IF_READY, RequestKind.ARTICLE])
def test_what_was_answered_is_asked_for_again_at_once(store: Store, how: RequestKind) -> None:
    """An edit is told and answered, and seconds later the page is set to Ready: nobody would ever look."""
    page = Request("a-page", how)
    assert [store.ask(page, repeat=60) for _ in range(2)] == [True, False]
    store.answered(page)
    assert [store.ask(page, repeat=60) for _ in range(2)] == [True, False]
    assert queue_rows.asked(store, waiting=0) == [page]


def test_a_test_and_the_real_thing_are_two_requests(store: Store) -> None:
    """Whoever looks at a test and then asks for the real one within the minute wants both."""
    requests = [Request("letter.md", how) for how in RequestKind]
    assert all(store.ask(request, repeat=60) for request in requests)
    store.answered(requests[0])
    assert {request.how for request in queue_rows.asked(store, waiting=0)} == set(RequestKind) - {
        requests[0].how
    }


def test_the_event_has_its_time_before_the_queue_looks(store: Store, factory: StoreFactory) -> None:
    store.ask(Request("old.md"), repeat=60)
    factory.set_now(NOON + 30)
    store.ask(Request("new.md"), repeat=60)
    assert [request.ref for request in queue_rows.asked(store, waiting=30)] == ["old.md"]
    assert [request.ref for request in queue_rows.asked(store, waiting=0)] == ["old.md", "new.md"]


@pytest.mark.parametrize("repeat", [0, 60])
def test_what_was_asked_for_by_a_clock_that_was_ahead_is_heard(
    store: Store, factory: StoreFactory, repeat: float
) -> None:
    """Once the clock is right, it would be “asked for already” until that day, and nothing would happen."""
    factory.set_now(NOON + 86_400)
    waits, sent = Request("waits.md"), Request("sent.md", RequestKind.TEST)
    assert all(store.ask(one, repeat=repeat) for one in (waits, sent))
    store.answered(sent)
    factory.set_now(NOON)
    assert queue_rows.asked(store, waiting=15) == [waits]
    assert queue_rows.unserved(store, 300) == [waits]
    assert store.ask(sent, repeat=repeat)
    assert queue_rows.asked(store, waiting=0) == [sent, waits]
    factory.set_now(NOON - 1)  # a small step is no reason to send a test twice
    assert store.ask(sent, repeat=60) is False


def test_a_letter_is_planned_changed_and_taken_back(store: Store, factory: StoreFactory) -> None:
    """Asked for at eight, it must not go out at six; and whoever changes his mind is heard."""
    letter = Request("a-page", RequestKind.REAL, NOON + 7200)
    assert store.ask(letter, repeat=60)
    assert queue_rows.asked(store, waiting=0) == []
    assert [one.not_before for one in queue_rows.planned(store)] == [NOON + 7200]
    assert store.ask(Request("a-page", RequestKind.REAL, NOON + 3600), repeat=60)
    assert [one.not_before for one in queue_rows.planned(store)] == [NOON + 3600]
    factory.set_now(NOON + 3600)
    assert queue_rows.planned(store) == []
    assert queue_rows.asked(store, waiting=30) == [letter]
    assert store.answered(letter)
    assert not store.answered(letter)
    assert queue_rows.asked(store, waiting=0) == []


def test_a_planned_letter_can_be_sent_at_once(store: Store) -> None:
    assert store.ask(Request("a-page", RequestKind.REAL, NOON + 7200), repeat=60)
    assert store.ask(Request("a-page", RequestKind.REAL), repeat=60)
    assert queue_rows.asked(store, waiting=0) == [Request("a-page", RequestKind.REAL)]
    assert queue_rows.planned(store) == []


def test_what_was_taken_back_or_put_off_meanwhile_is_not_written(store: Store) -> None:
    """Whoever cancels while the page is being read must not see it go out."""
    asked = Request("letter.md", RequestKind.REAL)
    new = NewMailout(id=mailout_id("letter.md"), kind=Kind.MARKDOWN, ref="letter.md")
    with pytest.raises(NotFound):
        store.enqueue(new, requested="letter.md")
    store.ask(asked, repeat=60)
    store.answered(asked)
    with pytest.raises(NotFound):
        store.enqueue(new, requested="letter.md")
    store.ask(Request("letter.md", RequestKind.REAL, not_before=NOON + 60), repeat=0)
    with pytest.raises(NotFound):
        store.enqueue(new, requested="letter.md")
    store.ask(asked, repeat=0)
    assert store.enqueue(new, requested="letter.md").id == new.id
    store.answered(asked)
    assert store.enqueue(new, requested="letter.md").id == new.id, "another worker has written it"
