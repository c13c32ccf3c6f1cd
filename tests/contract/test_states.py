"""Every state, every way to move a message: what the table allows happens, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from mailout.base.errors import TransitionRefused
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.protocol import Attempt
from mailout.outbox.delivery.states import COLUMN_OF, DOUBTFUL, TRANSITIONS, WAITING, State, allowed
from mailout.outbox.queue.port import Recipient
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import (
    GRACE,
    LEASE,
    Sender,
    assert_ledger,
    confirmed,
    handed_mailout,
    mailout,
    rejected,
    result,
    state_of,
)
from tests.contract.stores import StoreFactory

EMAIL = "ann@example.org"
LATER = NOON + LEASE + GRACE + 1  # leases have run out, retries are due

SES_ID = "ses-sent"


@dataclass
class Scene:
    """One mailout of one message, and everything that can be done to it."""

    store: Store
    factory: StoreFactory
    mailout_id: str
    attempt: Attempt

    @property
    def state(self) -> State:
        return state_of(self.store, self.attempt.id)

    def record(self, state: State, **fields: Any) -> None:
        Sender(self.store, self.mailout_id).step(results=[result(self.attempt, state, **fields)])

    def give_back(self) -> None:
        self.record(State.PENDING, give_back=True)

    def withdraw(self) -> None:
        Sender(self.store, self.mailout_id).step(withdraw=[self.attempt])

    def claim(self) -> None:
        self.factory.set_now(LATER)
        Sender(self.store, self.mailout_id).step(want=10)

    def leave(self) -> None:
        self.store.unsubscribe(EMAIL, None)
        self.claim()

    def reap(self) -> None:
        self.factory.set_now(LATER)
        self.store.reap(GRACE)

    def settle(self, to: State) -> None:
        self.store.settle(self.mailout_id, to, wait=0.0)

    def retry(self) -> None:
        self.store.retry_failed(self.mailout_id)

    def cancel(self) -> None:
        self.store.cancel(self.mailout_id)

    def confirm(self) -> None:
        confirmed(self.store, self.attempt)

    def revoke(self) -> None:
        rejected(self.store, None, SES_ID)  # known by SES's own id, which only a sent message has


@dataclass(frozen=True)
class Act:
    """One way to move a message: from where it does so, and to where."""

    do: Callable[[Scene], None]
    before: Sequence[State]
    after: State


def _recorded(state: State) -> Act:
    return Act(lambda scene: scene.record(state), DOUBTFUL, state)


def _settled(state: State) -> Act:
    return Act(partial(Scene.settle, to=state), (State.UNKNOWN,), state)


ACTS: Mapping[str, Act] = {
    "a result says sent": _recorded(State.SENT),
    "a result says failed": _recorded(State.FAILED),
    "a result says retry": _recorded(State.RETRY_SCHEDULED),
    "a result says invalid": _recorded(State.VALIDATION_FAILED),
    "a result says unknown": Act(
        lambda scene: scene.record(State.UNKNOWN), (State.SENT_ATTEMPT,), State.UNKNOWN
    ),
    "a result gives it back": Act(Scene.give_back, DOUBTFUL, State.PENDING),
    "withdraw": Act(Scene.withdraw, DOUBTFUL, State.PENDING),
    "claim": Act(Scene.claim, WAITING, State.SENT_ATTEMPT),
    "leave before its turn": Act(Scene.leave, WAITING, State.SUPPRESSED),
    "reap": Act(Scene.reap, (State.SENT_ATTEMPT,), State.UNKNOWN),
    "settle as sent": _settled(State.SENT),
    "settle as failed": _settled(State.FAILED),
    "settle as pending": _settled(State.PENDING),
    "retry": Act(Scene.retry, (State.FAILED,), State.PENDING),
    "cancel": Act(Scene.cancel, WAITING, State.SUPPRESSED),
    "an event confirms it": Act(Scene.confirm, (*WAITING, *DOUBTFUL), State.SENT),
    "an event revokes it": Act(Scene.revoke, (State.SENT,), State.FAILED),
}

RESTING = list(COLUMN_OF)


@pytest.fixture
def scene(store: Store, factory: StoreFactory, state: State) -> Scene:
    """A message brought into `state` through the port alone."""
    mailout_id = mailout(store, EMAIL)
    made = Scene(store, factory, mailout_id, Sender(store, mailout_id).begin_one().attempt)
    if state is State.PENDING:
        made.withdraw()
    elif state is State.SUPPRESSED:
        made.withdraw()
        store.unsubscribe(EMAIL, None)
        Sender(store, mailout_id).step(want=1)
    elif state is State.SENT:
        made.record(state, provider_message_id=SES_ID)
    elif state is not State.SENT_ATTEMPT:
        made.record(state, retry_in=30.0)
    assert made.state is state
    return made


@pytest.mark.parametrize("name", ACTS)
@pytest.mark.parametrize("state", RESTING)
def test_an_act_moves_a_message_only_where_the_table_says(scene: Scene, state: State, name: str) -> None:
    """A step that the table does not know would count a message wrongly, or send it twice."""
    act = ACTS[name]
    before, ledger = (
        outbox_rows.message(scene.store, scene.attempt.id),
        scene.store.mailout(scene.mailout_id).ledger,
    )
    act.do(scene)
    if state in act.before:
        assert allowed(state, act.after)
        assert scene.state is act.after
    else:
        assert outbox_rows.message(scene.store, scene.attempt.id) == before
        assert scene.store.mailout(scene.mailout_id).ledger == ledger
    assert_ledger(scene.store, scene.mailout_id)


def test_the_acts_cover_the_whole_table() -> None:
    """A step of the table that no act takes would be tested nowhere."""
    taken = {(before, act.after) for act in ACTS.values() for before in act.before}
    refused_at_claim = {(State.PENDING, State.VALIDATION_FAILED)}  # the test below
    table = {(before, after) for before, afters in TRANSITIONS.items() for after in afters}
    assert taken | refused_at_claim == table


def test_a_message_whose_recipient_is_gone_is_never_begun(store: Store) -> None:
    """The check of the recipient: without it mail goes to somebody who was deleted."""
    id = handed_mailout(store, Recipient(EMAIL, recipient_id="r-1"), is_test=True)
    assert Sender(store, id).begin() == []
    (row,) = outbox_rows.messages(store, id)
    assert (row["state"], row["error_code"]) == (State.VALIDATION_FAILED, "RECIPIENT_NOT_FOUND")
    assert (row["attempts"], row["epoch"]) == (1, 0)  # received, which counts, and never called
    assert_ledger(store, id)


@pytest.mark.parametrize("state", RESTING)
def test_the_store_itself_refuses_every_other_step(scene: Scene, factory: StoreFactory, state: State) -> None:
    """Whatever program writes to the tables: a sent message cannot wait again."""
    for after in State:
        if after is state or allowed(state, after):
            continue
        with pytest.raises(Exception, match="transition refused"):
            factory.raw("UPDATE email_outbox SET state = ? WHERE id = ?", (after.value, scene.attempt.id))
        assert scene.state is state


@pytest.mark.parametrize("state", [State.SENT_ATTEMPT])
def test_an_epoch_never_falls(scene: Scene, factory: StoreFactory, state: State) -> None:
    """An epoch that fell would let an old attempt speak for a new one."""
    with pytest.raises(Exception, match="transition refused"):
        factory.raw("UPDATE email_outbox SET epoch = epoch - 1 WHERE id = ?", (scene.attempt.id,))
    assert outbox_rows.message(scene.store, scene.attempt.id)["epoch"] == 1


@pytest.mark.parametrize("wrong", [State.SUPPRESSED, State.RECEIVED, State.VALIDATED, State.SENT_ATTEMPT])
@pytest.mark.parametrize("state", DOUBTFUL)
def test_a_result_that_is_no_outcome_is_refused_whole(scene: Scene, state: State, wrong: State) -> None:
    """Half of a refused step written down would leave ledger and messages apart."""
    before = outbox_rows.message(scene.store, scene.attempt.id)
    with pytest.raises(TransitionRefused):
        scene.record(wrong)
    assert outbox_rows.message(scene.store, scene.attempt.id) == before
    assert_ledger(scene.store, scene.mailout_id)
