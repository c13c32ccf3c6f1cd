"""The sender: takes what the store has begun for it, hands it to the transport, and reports back.

It never sends what `step` did not return, never twice, and never after its lease could have run out.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

from mailout.delivery.calls import Caller
from mailout.delivery.lanes import InlineLanes, Lanes, ThreadLanes
from mailout.delivery.options import Observer, RunReport, SenderOptions
from mailout.delivery.pacing import bulk_size
from mailout.delivery.patience import patiently
from mailout.delivery.protocol import Claimed
from mailout.delivery.recovery import recover
from mailout.delivery.run import Run
from mailout.delivery.session import Session
from mailout.delivery.throttling import Throttling
from mailout.ports import Clock, Journals, Mail, Outbox, Transport


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

    def run(self, campaign_id: str | None, *, deadline: float | None = None) -> RunReport:
        """Send until there is nothing left, or something ends it. `deadline` is on the monotonic clock."""
        options = self._options
        patiently(lambda: recover(self._store, self._journals, options.timing.reap_grace), self._clock)
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
        lanes: Lanes = InlineLanes(caller) if options.inline else ThreadLanes(options.concurrency, caller)
        session = Session(
            store=self._store,
            transport=self._transport.name,
            journals=self._journals,
            clock=self._clock,
            options=options,
            observer=self._observer,
            stop=self._stop,
            caller=caller,
            lanes=lanes,
            group_size=group_size,
            campaign_id=campaign_id,
        )
        run = Run(session, deadline)
        # A full collection would walk over everything loaded so far: 50 ms in which no call keeps its slot.
        gc.freeze()
        try:
            return run.run()
        finally:
            gc.unfreeze()
            lanes.close()
