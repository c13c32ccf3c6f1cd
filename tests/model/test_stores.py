"""Whatever senders do, in any order: both real stores answer as the model does, and their ledgers balance."""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from mailout.outbox.delivery import outbox_rows, protocol
from mailout.outbox.delivery.states import State
from tests.clocks import NOON, FakeClock
from tests.contract.scenes import GRACE, LEASE, Sender, assert_ledger, mailout
from tests.contract.stores import StoreFactory
from tests.model import store as model

MESSAGES = 3
RESULTS = (State.SENT, State.FAILED, State.UNKNOWN, State.RETRY_SCHEDULED)
SETTLED = (State.SENT, State.FAILED, State.PENDING)


class Senders(RuleBasedStateMachine):
    """One mailout to three people; sessions come and go, and everything may be said late or twice."""

    def __init__(self, factory: StoreFactory, store: Any, numbers: Any) -> None:
        super().__init__()
        self.factory = factory
        self.store = store
        self.number = next(numbers)
        self.now = NOON + 10_000.0 * self.number
        self.model = model.Store.of(MESSAGES)
        self.senders: list[Sender] = []
        self.attempts: list[model.Attempt] = []

    @initialize()
    def a_mailout(self) -> None:
        self.factory.set_now(self.now)
        self.store.reap(0.0)
        people = [f"{name}{self.number}@example.org" for name in "abc"]
        self.mailout_id = mailout(
            self.store, *people, ref=f"page {self.number}", list_key=f"list-{self.number}"
        )
        self.ids = [row["id"] for row in outbox_rows.messages(self.store, self.mailout_id)]

    @precondition(lambda self: len(self.senders) < 3)
    @rule()
    def a_sender_starts(self) -> None:
        self.senders.append(Sender(self.store, self.mailout_id))
        self.model, _ = model.open_session(self.model)

    @precondition(lambda self: self.senders)
    @rule(data=some.data())
    def a_step(self, data: some.DataObject) -> None:
        which = data.draw(some.integers(0, len(self.senders) - 1))
        sender = self.senders[which]
        n = sender.n + 1 if data.draw(some.integers(0, 4)) else max(1, sender.n)  # now and then a late copy
        told = data.draw(some.lists(some.sampled_from(self.attempts), unique=True)) if self.attempts else []
        results = {a: data.draw(some.sampled_from(RESULTS)) for a in told if data.draw(some.booleans())}
        withdraw = [attempt for attempt in told if attempt not in results]
        rest: dict[str, Any] = {
            "want": data.draw(some.integers(0, MESSAGES)),
            "recover": data.draw(some.booleans()),
            "close": data.draw(some.integers(0, 5)) == 0,
        }
        sender.n = max(sender.n, n)
        reply = sender.step(
            n=n,
            results=[protocol.Result(self._real(a), state, retry_in=0.0) for a, state in results.items()],
            withdraw=[self._real(a) for a in withdraw],
            **rest,
        )
        self.model, expected = model.step(
            self.model,
            which,
            n,
            results=[model.Result(*pair) for pair in results.items()],
            withdraw=withdraw,
            **rest,
        )
        assert reply.fenced == expected.fenced
        assert [row.attempt for row in reply.rows] == [self._real(a) for a in expected.begun]
        assert list(reply.recovered) == [self._real(a) for a in expected.recovered]
        self.attempts += expected.begun

    @rule()
    def leases_run_out_and_the_lost_are_given_up(self) -> None:
        self.now += LEASE + GRACE + 1
        self.factory.set_now(self.now)
        self.store.reap(GRACE)
        self.model = model.reap(model.leases_run_out(self.model, range(len(self.model.sessions))))

    @precondition(lambda self: any(row.state is State.UNKNOWN for row in self.model.rows))
    @rule(to=some.sampled_from(SETTLED))
    def a_person_settles(self, to: State) -> None:
        unknown = [i for i, row in enumerate(self.model.rows) if row.state is State.UNKNOWN]
        assert self.store.settle(self.mailout_id, to, wait=0.0) == len(unknown)
        for message in unknown:
            self.model = model.settle(self.model, message, to)

    @invariant()
    def both_know_the_same(self) -> None:
        if not hasattr(self, "ids"):
            return
        rows = outbox_rows.messages(self.store, self.mailout_id)
        assert [(row["state"], row["epoch"]) for row in rows] == [
            (row.state, row.epoch) for row in self.model.rows
        ]
        assert_ledger(self.store, self.mailout_id)

    def _real(self, attempt: model.Attempt) -> protocol.Attempt:
        return protocol.Attempt(self.ids[attempt.message], attempt.epoch)


def test_a_store_does_what_the_model_does(factory: StoreFactory) -> None:
    store = factory.make(FakeClock())
    numbers = count(1)
    run_state_machine_as_test(
        lambda: Senders(factory, store, numbers),  # type: ignore[arg-type]  # it is only called
        settings=settings(max_examples=30, stateful_step_count=25),
    )
