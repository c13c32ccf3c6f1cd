"""A store that counts what passes through it: every step that a message takes is taken there."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any, TypeVar, cast

from mailout.base.clock import Clock
from mailout.base.errors import StoreError
from mailout.insight.metrics.port import Counter, MetricsStore
from mailout.insight.metrics.tally import Tally
from mailout.outbox.delivery.protocol import Step, StepReply
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback.port import Applied, EventReading
from mailout.outbox.queue.mailout import DeferReason, Mailout
from mailout.outbox.queue.port import Recipient

log = logging.getLogger("mailout.metrics")

FLUSH_SECONDS = 5.0
"""How much of its counts a process that is killed takes with it. The ledger loses nothing."""


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
        return getattr(self._store, name)

    # ── senders: often, so their counts wait a few seconds ──

    def step(self, step: Step) -> StepReply:
        reply = self._store.step(step)
        self._tally.step(step, reply)
        if step.close or self._clock.monotonic() >= self._next:
            self.flush()
        return reply

    # ── everybody else: now and then ──

    def reap(self, grace: float) -> int:
        return self._moved(State.UNKNOWN, self._store.reap(grace))

    def settle(
        self, mailout_id: str | None, to: State, *, wait: float, ids: Sequence[str] | None = None
    ) -> int:
        return self._moved(to, self._store.settle(mailout_id, to, wait=wait, ids=ids))

    def retry_failed(self, mailout_id: str | None, *, ids: Sequence[str] | None = None) -> int:
        return self._moved(State.PENDING, self._store.retry_failed(mailout_id, ids=ids))

    def cancel_single_mails(self, ids: Sequence[str]) -> int:
        return self._moved(State.SUPPRESSED, self._store.cancel_single_mails(ids))

    def apply_events(self, readings: Sequence[EventReading]) -> Applied:
        applied = self._store.apply_events(readings)
        self._moved(State.SENT, applied.confirmed)
        self._moved(State.FAILED, applied.revoked)
        return applied

    def freeze_subscribers(
        self, id: str, *, chunk: int = 20_000, attributes: Sequence[str] = ()
    ) -> int | None:
        added = self._store.freeze_subscribers(id, chunk=chunk, attributes=attributes)
        self._moved(State.PENDING, added or 0)
        return added

    def freeze_recipients(self, id: str, recipients: Sequence[Recipient], up_to: str | None = None) -> int:
        return self._moved(State.PENDING, self._store.freeze_recipients(id, recipients, up_to))

    def cancel(self, id: str) -> Mailout:
        before = self._store.mailout(id).ledger.suppressed
        cancelled = self._store.cancel(id)
        self._moved(State.SUPPRESSED, cancelled.ledger.suppressed - before)
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

    def _moved(self, state: State, n: int) -> int:
        if n > 0:
            self._tally.moved(state, n)
            self.flush()
        return n

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
