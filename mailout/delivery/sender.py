"""The sender: takes what the store has begun for it, hands it to the transport, and reports back.

It never sends what `step` did not return, never twice, and never after its lease could have run out.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

from mailout.clock import Clock
from mailout.delivery.call_pool import CallPool, InlineCallPool, ThreadCallPool
from mailout.delivery.calls import Caller
from mailout.delivery.options import Observer, RunReport, SenderOptions
from mailout.delivery.pacing import bulk_size
from mailout.delivery.port import Journals, Mail, Outbox, Transport
from mailout.delivery.protocol import Claimed
from mailout.delivery.recovery import recover
from mailout.delivery.run import Run
from mailout.delivery.session import Session
from mailout.delivery.store_retry import wait_for_store
from mailout.delivery.throttling import Throttling


class Sender:
    """One process's sender for one mailout (or, with no mailout, for single mails)."""

    def __init__(
        self,
        store: Outbox,
        transport: Transport,
        compose: Callable[[Claimed], Mail],
        journals: Journals,
        clock: Clock,
        options: SenderOptions,
        observer: Observer | None = None,
        throttling: Throttling | None = None,
    ) -> None:
        self._store = store
        self._transport = transport
        self._compose = compose
        self._journals = journals
        self._clock = clock
        self._options = options
        self._observer = observer
        self._throttling = throttling or Throttling()
        self._stop = threading.Event()

    def stop(self) -> None:
        """Finish what is in hand, write it down, release the rest. Safe in a signal handler."""
        self._stop.set()

    def run(
        self, mailout_id: str | None, *, deadline: float | None = None, until_idle: bool = False
    ) -> RunReport:
        """Send until there is nothing left, or something ends it. `deadline` is on the monotonic clock.

        Single mails have no end: `until_idle` ends when none is due.
        """
        options = self._options
        wait_for_store(lambda: recover(self._store, self._journals, options.timing.reap_grace), self._clock)
        group_size = bulk_size(options.rate, min(self._transport.max_batch, options.batch_size))
        caller = Caller(
            self._transport,
            self._compose,
            self._clock,
            options.rate,
            options.timing,
            options.retry,
            self._throttling,
            options.circuit_failures,
        )
        pool: CallPool = (
            InlineCallPool(caller) if options.inline else ThreadCallPool(options.concurrency, caller)
        )
        session = Session(
            store=self._store,
            transport=self._transport.name,
            journals=self._journals,
            clock=self._clock,
            options=options,
            observer=self._observer,
            stop=self._stop,
            caller=caller,
            pool=pool,
            group_size=group_size,
            mailout_id=mailout_id,
        )
        run = Run(session, deadline, until_idle=until_idle)
        # A full collection would walk over everything loaded so far: 50 ms in which no call keeps its slot.
        gc.freeze()
        try:
            return run.run()
        finally:
            gc.unfreeze()
            pool.close()
