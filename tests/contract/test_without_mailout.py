"""Messages without a mailout: the limits of their companies hold, and whoever has left is left alone."""

from __future__ import annotations

import pytest

from mailout.base.ids import transactional_id
from mailout.letters.content.content_rows import keep_content
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback.port import StatusChange
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import LETTER, Sender, buckets, state_of, subscribe
from tests.contract.stores import StoreFactory


class Outbox:
    """Puts single messages into the outbox, as whoever takes them in will."""

    def __init__(self, store: Store, factory: StoreFactory) -> None:
        self._factory = factory
        self._content = keep_content(store, LETTER)
        self._count = 0

    def add(self, email: str, *, company: str = "acme", category: str | None = "transactional") -> str:
        self._count += 1
        id = transactional_id(company, f"{email} {self._count}")
        self._factory.raw(
            "INSERT INTO email_outbox (id, company_id, email, content_id, category, is_rehearsal, created_at)"
            " SELECT ?, ?, ?, hash, ?, ?, created_at FROM contents WHERE hash = ?",
            (id, company, email, category, True, self._content),  # the senders of these scenes use the folder
        )
        return id


@pytest.fixture
def outbox(store: Store, factory: StoreFactory) -> Outbox:
    return Outbox(store, factory)


@pytest.mark.parametrize("kind", ["hour", "day"])
def test_a_company_that_is_full_is_passed_over(
    store: Store, factory: StoreFactory, outbox: Outbox, kind: str
) -> None:
    """Also in the middle of a claim; and nobody asks again at once for what has to wait."""
    acme = [outbox.add(f"a{n}@example.org") for n in range(5)]
    zoo = [outbox.add(f"z{n}@example.org", company="zoo") for n in range(2)]
    limits = buckets(NOON, **{kind: 4})
    sender = Sender(store, None)
    first = sender.begin(2, buckets=limits)
    factory.raw("UPDATE usage SET n = 0 WHERE scope = 'all'")  # as if the others' limit were higher
    second = sender.begin(7, buckets=limits)
    assert [row.attempt.id for row in first] == [acme[0], zoo[0]]
    assert [row.attempt.id for row in second] == [acme[1], zoo[1], *acme[2:4]]
    factory.raw("UPDATE usage SET n = 0 WHERE scope = 'all'")
    last = sender.step(want=7, buckets=limits)
    assert (list(last.rows), last.limited, last.next_due_at) == ([], None, None)
    factory.raw("UPDATE usage SET n = 0 WHERE scope = 'all'")
    again = sender.step(want=7, buckets=limits, withdraw=[first[0].attempt])
    assert [row.attempt.id for row in again.rows] == acme[:1]
    assert state_of(store, acme[4]) is State.PENDING


@pytest.mark.parametrize(
    ("heard", "category", "goes"),
    [
        (None, "transactional", True),
        (None, "marketing", True),
        (StatusChange("unsubscribed", NOON), "transactional", True),
        (StatusChange("unsubscribed", NOON), "marketing", False),
        (StatusChange("unsubscribed", NOON), None, False),
        (StatusChange("unsubscribed", NOON, complained=True), "transactional", False),
        (StatusChange("unsubscribed", NOON, complained=True), "marketing", False),
        (StatusChange("bounced", NOON), "transactional", False),
        (StatusChange("bounced", NOON), "marketing", False),
    ],
)
def test_who_has_left_is_left_alone(
    store: Store, outbox: Outbox, heard: StatusChange | None, category: str | None, goes: bool
) -> None:
    """A receipt still reaches who unsubscribed from news; a dead address and a complainer get nothing."""
    subscribe(store, "ana@example.org")
    if heard is not None:
        store.change_statuses({"ana@example.org": heard})
    id = outbox.add("ana@example.org", category=category)
    stranger = outbox.add("stranger@example.org", category=category)
    reply = Sender(store, None).step(want=5, buckets=buckets(NOON))
    assert [row.attempt.id for row in reply.rows] == ([id, stranger] if goes else [stranger])
    assert state_of(store, id) is (State.SENT_ATTEMPT if goes else State.SUPPRESSED)
    assert reply.suppressed == (0 if goes else 1)
