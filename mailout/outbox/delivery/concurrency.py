"""Whether as many calls at a time as are set can reach the rate."""

from __future__ import annotations

import logging

from mailout.outbox.delivery.options import CallTime

log = logging.getLogger("mailout.delivery")

ENOUGH_TO_TELL = 60.0
"""Seconds of sending, before anything is said about how fast it can be."""


class ConcurrencyCheck:
    """Adds up how long the provider takes to answer, for each mailout."""

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._call_times: dict[str, CallTime] = {}
        self.notes: dict[str, str] = {}  # of each mailout whose rate is out of reach: what to change

    def add(self, id: str, call_time: CallTime, rate: float) -> None:
        measured = self._call_times[id] = self._call_times.get(id, CallTime()) + call_time
        needed = measured.concurrency_needed(rate)
        if measured.seconds >= ENOUGH_TO_TELL and needed > self._concurrency and id not in self.notes:
            self.notes[id] = (
                f"SEND_CONCURRENCY={self._concurrency} cannot reach the rate: the provider takes"
                f" {measured.latency:.2f} s to answer, so {needed} calls at a time are needed."
            )
            log.warning(self.notes[id])
