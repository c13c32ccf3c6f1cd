"""A store that counts what passes through it: every step that a message takes is taken there."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar, cast

from mailout.base.clock import Clock
from mailout.base.errors import StoreError
from mailout.insight.metrics.port import Counter, MetricsStore
from mailout.insight.metrics.tally import Tally
from mailout.outbox.delivery.protocol import Step, StepReply
from mailout.outbox.delivery.states import State
from mailout.outbox.queue.mailout import DeferReason, Mailout

log = logging.getLogger("mailout.metrics")

FLUSH_SECONDS = 5.0
"""How much of its counts a process that is killed takes with it. The ledger loses nothing."""


Moves = Callable[..., Mapping[State, int]]
"""Of an act's answer and arguments: how many messages came into which state."""
MOVES: Mapping[str, Moves] = {
    "reap": lambda lost, *_, **__: {State.UNKNOWN: lost},
    "settle": lambda n, mailout_id, to, **__: {to: n},
    "retry_failed": lambda n, *_, **__: {State.PENDING: n},
    "cancel_single_mails": lambda n, *_, **__: {State.SUPPRESSED: n},
    "apply_events": lambda told, *_, **__: {State.SENT: told.confirmed, State.FAILED: told.revoked},
    "freeze_subscribers": lambda added, *_, **__: {State.PENDING: added or 0},
    "freeze_recipients": lambda added, *_, **__: {State.PENDING: added},
}
"""Acts that are made now and then: their counts go to the store at once."""
StoreT = TypeVar("StoreT", bound=MetricsStore)


def counted(store: StoreT, clock: Clock) -> StoreT:
    """The same store, counting."""
    return cast(StoreT, CountedStore(store, clock))


class CountedStore:
    """Everything else goes to the store as it is."""

    def __init__(self, store: MetricsStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._tally = Tally()
        self._flushing = threading.Lock()
        self._next = clock.monotonic() + FLUSH_SECONDS

    def __getattr__(self, name: str) -> Any:
        act = getattr(self._store, name)
        return partial(self._act, act, MOVES[name]) if name in MOVES else act

    def _act(self, act: Callable[..., Any], moves: Moves, *args: Any, **options: Any) -> Any:
        answer = act(*args, **options)
        self._moved(moves(answer, *args, **options))
        return answer

    def step(self, step: Step) -> StepReply:
        """Often, so its counts wait a few seconds."""
        reply = self._store.step(step)
        self._tally.step(step, reply)
        if step.close or self._clock.monotonic() >= self._next:
            self.flush()
        return reply

    def cancel(self, id: str) -> Mailout:
        before = self._store.mailout(id).ledger.suppressed
        cancelled = self._store.cancel(id)
        self._moved({State.SUPPRESSED: cancelled.ledger.suppressed - before})
        return cancelled

    def defer(self, id: str, reason: DeferReason, until: float | None, note: str | None = None) -> Mailout:
        deferred = self._store.defer(id, reason, until, note)
        if deferred.defer_reason is reason:  # else it is over, or another hold stands
            self._tally.add(Counter.DEFERS, reason)
            self.flush()
        return deferred

    def close(self) -> None:
        self.flush()
        self._store.close()

    def _moved(self, counts: Mapping[State, int]) -> None:
        if any(counts.values()):
            for state, n in counts.items():
                self._tally.moved(state, n)
            self.flush()

    def flush(self) -> None:
        """Never at the cost of what is counted: a store that is away gets the counts later."""
        if not self._flushing.acquire(blocking=False):
            return
        try:
            self._next = self._clock.monotonic() + FLUSH_SECONDS
            taken = self._tally.take()
            if taken:
                try:
                    self._store.add_counts(taken)
                except StoreError as error:
                    self._tally.give_back(taken)
                    log.debug("the counts wait for the store: %s", error)
        finally:
            self._flushing.release()
