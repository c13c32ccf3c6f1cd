"""How many calls may be in flight: as set, or (`auto`) as many as the rate and the latency need."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence

from mailout.outbox.delivery.options import CallTime
from mailout.outbox.delivery.protocol import UNLIMITED_RATE, Outcome, OutcomeKind

log = logging.getLogger("mailout.delivery")

ONE_BY_ONE_RATE = 5.0
"""Messages a second up to which one call follows the other."""
MAX_CALLS = 50
"""In flight by `auto`: a provider that hangs puts all of them in doubt."""
UNLIMITED_BULK_RATE = 5 * UNLIMITED_RATE
"""Messages a second that no rate at all counts as, in calls for many: about what one process can do."""
ENOUGH_TO_TELL_SECONDS = 60.0
"""Of sending, before anything is said about how fast it can be."""
_ANSWERED = (OutcomeKind.SENT, OutcomeKind.PERMANENT)
_SILENT = (OutcomeKind.UNKNOWN, OutcomeKind.TRANSIENT, OutcomeKind.INVALID)


class CallsInFlight:
    """Learns from each call. Not safe for several threads: the caller locks."""

    def __init__(self, setting: int | None, rate: float, group_size: int) -> None:
        """`setting` None: `auto`."""
        self._setting = setting
        self._one_by_one = 0 < rate <= ONE_BY_ONE_RATE
        unlimited = UNLIMITED_RATE if group_size == 1 else UNLIMITED_BULK_RATE
        self._calls_per_second = (rate or unlimited) / group_size
        self._deviation = 0.0
        self._hangs = False
        self.latency = 0.0  # of the last calls that were answered; 0: not known yet

    def learn(self, outcomes: Sequence[Outcome], took: float) -> None:
        if any(outcome.kind not in _SILENT for outcome in outcomes):
            self._hangs = False
        elif any(outcome.kind is OutcomeKind.UNKNOWN for outcome in outcomes):
            self._hangs = True
        if any(outcome.kind in _ANSWERED for outcome in outcomes):
            distance = abs(took - self.latency) if self.latency else 0.0
            self._deviation = 0.9 * self._deviation + 0.1 * distance
            self.latency = 0.9 * self.latency + 0.1 * took if self.latency else took

    @property
    def allowed(self) -> int:
        """After a call without an answer one at a time, until there is one: the next may hang as well."""
        if self._hangs:
            return 1
        if self._setting is not None:
            return self._setting
        if self._one_by_one or not self.latency:
            return 1
        # Some take longer than the others, and one call waits for its slot while the others are answered.
        longest = self.latency + 2 * self._deviation
        return min(MAX_CALLS, 1 + math.ceil(self._calls_per_second * longest))


class ConcurrencyCheck:
    """Whether so many calls can reach the rate: adds up how long the provider takes, for each mailout."""

    def __init__(self, setting: int | None) -> None:
        self._setting = setting
        self._call_times: dict[str, CallTime] = {}
        self.notes: dict[str, str] = {}  # of each mailout whose rate is out of reach: what to change

    def add(self, id: str, call_time: CallTime, rate: float) -> None:
        measured = self._call_times[id] = self._call_times.get(id, CallTime()) + call_time
        needed = measured.concurrency_needed(rate)
        most = self._setting or (1 if rate <= ONE_BY_ONE_RATE else MAX_CALLS)
        if measured.seconds >= ENOUGH_TO_TELL_SECONDS and needed > most and id not in self.notes:
            self.notes[id] = (
                f"The rate is out of reach with calls in flight: {most}. The provider takes"
                f" {measured.latency:.2f} s to answer, so {needed} calls at a time are needed:"
                f" set SEND_CONCURRENCY={needed}."
            )
            log.warning(self.notes[id])
