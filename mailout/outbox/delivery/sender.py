"""The sender: takes what the store has begun for it, hands it to the transport, and reports back.

It never sends what `step` did not return, never twice, and never after its lease could have run out.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from mailout.base.clock import Clock
from mailout.outbox.delivery.call_pool import CallPool, ThreadCallPool
from mailout.outbox.delivery.calls import Caller
from mailout.outbox.delivery.options import Observer, RunReport, SenderOptions
from mailout.outbox.delivery.pacing import bulk_size
from mailout.outbox.delivery.port import Journals, Mail, Outbox, Transport
from mailout.outbox.delivery.protocol import Claimed
from mailout.outbox.delivery.recovery import reap
from mailout.outbox.delivery.run import Run
from mailout.outbox.delivery.session import Session
from mailout.outbox.delivery.store_retry import wait_for_store
from mailout.outbox.delivery.throttling import Throttling


@dataclass(eq=False, repr=False)
class Sender:
    """One process's sender for one mailout (or, with no mailout, for single mails)."""

    store: Outbox
    transport: Transport
    compose: Callable[[Claimed], Mail]
    journals: Journals
    clock: Clock
    options: SenderOptions
    observers: Sequence[Observer] = ()
    throttling: Throttling = field(default_factory=Throttling)
    _stop: threading.Event = field(default_factory=threading.Event, init=False)

    def stop(self) -> None:
        """Finish running calls, write down their results, release the rest. Safe in a signal handler."""
        self._stop.set()

    def run(
        self, mailout_id: str | None, *, deadline: float | None = None, until_idle: bool = False
    ) -> RunReport:
        """Send until everything is sent, or something ends it. `deadline` is on the monotonic clock.

        Single mails have no end: `until_idle` ends when none is due.
        """
        options = self.options
        give_up = partial(reap, self.store, self.journals, options.timing.reap_grace)
        wait_for_store(lambda: give_up(check_closed=True), self.clock)
        group_size = self._group_size(mailout_id)
        caller = Caller(self.transport, self.compose, self.clock, options, self.throttling, group_size)
        pool = CallPool(caller) if options.inline else ThreadCallPool(caller)
        session = Session(
            store=self.store,
            transport=self.transport.name,
            journals=self.journals,
            clock=self.clock,
            options=options,
            observers=self.observers,
            stop=self._stop,
            caller=caller,
            pool=pool,
            group_size=group_size,
            mailout_id=mailout_id,
        )
        run = Run(session=session, reap=give_up, deadline=deadline, until_idle=until_idle)
        # A full collection would walk over everything loaded so far: 50 ms in which no call keeps its slot.
        gc.freeze()
        try:
            return run.run()
        finally:
            gc.unfreeze()
            pool.close()

    def _group_size(self, mailout_id: str | None) -> int:
        """Messages a call. Hardly any two single mails have the same content, and a lost answer puts a whole
        call in doubt: where one by one is fast enough, it is better."""
        options = self.options
        slow = 0 < options.rate <= options.one_by_one_rate
        if slow or (options.one_by_one_rate and mailout_id is None):
            return 1
        return bulk_size(options.rate, min(self.transport.max_batch, options.batch_size))
