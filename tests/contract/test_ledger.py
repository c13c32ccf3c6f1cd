"""Invariants 4 and 5 under random use: the ledger, the counters and the acceptances of several senders."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.protocol import Attempt, StepReply
from mailout.outbox.delivery.states import State
from tests.clocks import NOON, FakeClock
from tests.contract.scenes import (
    ACCOUNT,
    GRACE,
    LEASE,
    Sender,
    buckets,
    enqueue,
    freeze,
    mailout,
    recount,
    result,
    subscribe,
)
from tests.contract.stores import StoreFactory

PEOPLE = [f"{letter}@example.org" for letter in "abcdef"]
QUOTA = 10_000
whichever = st.integers(0, 7)


class Sending(RuleBasedStateMachine):
    """Three senders over two mailouts. The model knows each attempt's fate, as the transport would."""

    def __init__(self, factory: StoreFactory) -> None:
        super().__init__()
        self.factory = factory
        self.now = NOON
        self.store = factory.make(FakeClock())
        self.mailout_ids = [mailout(self.store, *PEOPLE, ref="one", company_id="acme")]
        subscribe(self.store, "zoe@example.org")
        other = enqueue(self.store, "two", company_id="zoo")
        freeze(self.store, other)
        self.store.start(other, "worker")
        self.mailout_ids.append(other)
        self.store.set_quota(ACCOUNT, QUOTA, NOON)
        self.senders = [self._sender(which) for which in (0, 0, 1)]
        self.begun: list[tuple[Attempt, str, float]] = []  # every attempt, its company, when
        self.returned: set[Attempt] = set()
        self.accepted: Counter[str] = Counter()
        self.epochs: dict[str, int] = {}

    def _sender(self, which: int) -> Sender:
        return Sender(self.store, self.mailout_ids[which])

    def _current(self, states: tuple[State, ...]) -> list[Attempt]:
        """The attempts that a sender may still speak of."""
        return [
            Attempt(row["id"], row["epoch"])
            for mailout_id in self.mailout_ids
            for row in outbox_rows.messages(self.store, mailout_id)
            if row["state"] in states
        ]

    def _step(self, sender: Sender, **rest: Any) -> StepReply:
        reply = sender.step(buckets=buckets(self.now), **rest)
        if reply.fenced:
            position = self.senders.index(sender)
            self.senders[position] = Sender(self.store, sender.mailout_id)
        for row in reply.rows:
            assert self.accepted[row.attempt.id] == 0, "begun again after it was accepted"
            self.begun.append((row.attempt, row.company_id, reply.now))
        return reply

    @rule(who=st.integers(0, 2), want=st.integers(1, 4))
    def begin(self, who: int, want: int) -> None:
        self._step(self.senders[who], want=want)

    @precondition(lambda self: self._current((State.SENT_ATTEMPT,)))
    @rule(who=st.integers(0, 2), which=whichever)
    def is_accepted(self, who: int, which: int) -> None:
        open_ = self._current((State.SENT_ATTEMPT,))
        attempt = open_[which % len(open_)]
        self.accepted[attempt.id] += 1
        self._step(self.senders[who], results=[result(attempt)])

    @precondition(lambda self: self._current((State.SENT_ATTEMPT,)))
    @rule(
        who=st.integers(0, 2),
        which=whichever,
        state=st.sampled_from([State.FAILED, State.RETRY_SCHEDULED, State.VALIDATION_FAILED]),
        uncharge=st.booleans(),
    )
    def is_refused(self, who: int, which: int, state: State, uncharge: bool) -> None:
        open_ = self._current((State.SENT_ATTEMPT,))
        attempt = open_[which % len(open_)]
        if uncharge:
            self.returned.add(attempt)
        self._step(
            self.senders[who], results=[result(attempt, state, retry_in=3.0, uncharge=uncharge)], want=1
        )

    @precondition(lambda self: self._current((State.SENT_ATTEMPT, State.UNKNOWN)))
    @rule(who=st.integers(0, 2), which=whichever, given_back=st.booleans())
    def never_left(self, who: int, which: int, given_back: bool) -> None:
        open_ = self._current((State.SENT_ATTEMPT, State.UNKNOWN))
        attempt = open_[which % len(open_)]
        self.returned.add(attempt)
        if given_back:
            back = result(attempt, State.PENDING, give_back=True, retry_in=1.0)
            self._step(self.senders[who], results=[back])
        else:
            self._step(self.senders[who], withdraw=[attempt])

    @precondition(lambda self: self._current((State.SENT_ATTEMPT,)))
    @rule(who=st.integers(0, 2), which=whichever)
    def no_answer(self, who: int, which: int) -> None:
        open_ = self._current((State.SENT_ATTEMPT,))
        self._step(self.senders[who], results=[result(open_[which % len(open_)], State.UNKNOWN)])

    @precondition(lambda self: self.begun)
    @rule(who=st.integers(0, 2), which=st.integers(0, 50), state=st.sampled_from([State.SENT, State.FAILED]))
    def an_old_attempt_speaks(self, who: int, which: int, state: State) -> None:
        current = self._current((State.SENT_ATTEMPT, State.UNKNOWN))
        old = [attempt for attempt, _, _ in self.begun if attempt not in current]
        in_the_air = {attempt.id for attempt in current}
        choice = [attempt for attempt in old if attempt.id in in_the_air] or old  # where it would hurt
        if not choice:
            return
        attempt = choice[which % len(choice)]
        before = outbox_rows.message(self.store, attempt.id)
        self._step(self.senders[who], results=[result(attempt, state)], withdraw=[attempt])
        assert outbox_rows.message(self.store, attempt.id) == before

    @rule(who=st.integers(0, 2), late=st.integers(1, 3))
    def a_late_copy_of_a_step_comes(self, who: int, late: int) -> None:
        sender = self.senders[who]
        if sender.n >= late:
            assert sender.step(n=late, want=3).fenced

    @rule(seconds=st.sampled_from([1.0, 4.0, LEASE + GRACE + 1, 3600.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.factory.set_now(self.now)

    @rule()
    def reap(self) -> None:
        self.store.reap(GRACE)

    @rule(which=st.integers(0, 1), to=st.sampled_from([State.SENT, State.FAILED, State.PENDING]))
    def a_person_settles(self, which: int, to: State) -> None:
        if to is State.SENT:
            for row in outbox_rows.messages(self.store, self.mailout_ids[which], states=[State.UNKNOWN]):
                self.accepted[row["id"]] += 1
        self.store.settle(self.mailout_ids[which], to, wait=0.0)

    @rule(which=st.integers(0, 1))
    def a_person_retries(self, which: int) -> None:
        self.store.retry_failed(self.mailout_ids[which])

    @rule(which=st.integers(0, 1))
    def the_queue_goes_round(self, which: int) -> None:
        self.store.complete(self.mailout_ids[which])
        self.store.start(self.mailout_ids[which], "worker")

    @rule(who=st.integers(0, 5))
    def somebody_leaves(self, who: int) -> None:
        self.store.unsubscribe(PEOPLE[who], None)

    @rule()
    def the_second_is_cancelled(self) -> None:
        self.store.cancel(self.mailout_ids[1])

    @invariant()
    def the_ledger_is_what_the_messages_say(self) -> None:
        for mailout_id in self.mailout_ids:
            ledger = self.store.mailout(mailout_id).ledger
            assert ledger.balances
            assert ledger == recount(self.store, mailout_id)

    @invariant()
    def usage_is_the_attempts_that_were_not_returned(self) -> None:
        charged: Counter[tuple[str, str, str]] = Counter()
        for attempt, company, at in self.begun:
            if attempt not in self.returned:
                hour, _, day, _ = buckets(at)
                for bucket in (hour, day):
                    charged[company, bucket.kind, bucket.key] += 1
                    charged["all", bucket.kind, bucket.key] += 1
        for (scope, kind, key), n in charged.items():
            assert outbox_rows.usage(self.store, scope, kind, key) == n
        kept = sum(1 for attempt, _, _ in self.begun if attempt not in self.returned)
        assert outbox_rows.quota(self.store, ACCOUNT) == QUOTA - kept

    @invariant()
    def epochs_never_fall_and_nothing_is_accepted_twice(self) -> None:
        for mailout_id in self.mailout_ids:
            for row in outbox_rows.messages(self.store, mailout_id):
                assert row["epoch"] >= self.epochs.get(row["id"], 0)
                assert 0 <= row["attempts"] <= row["epoch"]
                assert (row["state"] == State.SENT) == (self.accepted[row["id"]] == 1)
                self.epochs[row["id"]] = row["epoch"]
        assert max(self.accepted.values(), default=0) <= 1


def test_the_ledger_balances_whatever_senders_and_people_do(factory: StoreFactory) -> None:
    run_state_machine_as_test(
        lambda: Sending(factory),  # type: ignore[arg-type]  # it is only called
        settings=settings(
            max_examples=20,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
