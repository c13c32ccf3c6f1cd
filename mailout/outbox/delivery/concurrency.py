"""How many calls may be in flight: as set, or (`auto`) as many as the rate and the latency need.

And how much a sender asks for in one step to keep them busy.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

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
TRIPS_SHARE = 0.1
"""Of the time, at most so much is spent on the way to the store and back."""
LARGER_STEPS = 10
"""A step is at most so many times as large for that."""
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


# ── How much to ask for: enough to keep the threads busy, no more ──


@dataclass(frozen=True, slots=True)
class BatchSize:
    """At most a second of sending, over what is held already."""

    want: int
    low: int  # ask again once no more than so many are held
    period: float = 0.0  # and not sooner than this after the last time


@dataclass(frozen=True, slots=True)
class CallCapacity:
    """What the threads can do: how many there are, how full a call can be and is, how long it takes."""

    concurrency: int
    group: int
    latency: float  # 0: not known yet
    filled: float = 0.0  # messages in a call, lately: one content each, so there may be few; 0: not known yet

    @property
    def reach(self) -> float:
        """Messages a second, if nothing else held them back."""
        return self.concurrency * (self.filled or self.group) / self.latency if self.latency else math.inf


def batch_size(
    work: CallCapacity,
    *,
    rate: float,
    batch: int,
    held: int,
    lead: float,
    round_trip: float,
    empty_trip: float,
    tolerance: float,
    remaining: float = math.inf,
) -> BatchSize:
    """`rate` 0: no limit. `lead` is how far ahead slots begin, `tolerance` how late one may be used;
    `round_trip` is of a step, `empty_trip` of asking for nothing.

    `remaining`: seconds until the run's end. Slots after it would be withdrawn and lost to the next sender.
    """
    if rate and work.reach < rate:
        return _slow_calls(work, rate, batch, held, lead, tolerance)
    batch = _step_size(batch, rate, empty_trip)
    second = min(rate * min(1.0, remaining) if rate else math.inf, work.reach)
    low = math.ceil(rate * (2 * round_trip + lead)) if rate else max(batch // 2, work.group)
    return BatchSize(_whole(min(batch, second - held), work.group), max(1, low))


def _step_size(batch: int, rate: float, empty_trip: float) -> int:
    """Larger where the store is far away: a step for each 50 would spend its time on the way."""
    needed = math.ceil((rate or UNLIMITED_BULK_RATE) * empty_trip / TRIPS_SHARE)
    return max(batch, min(LARGER_STEPS * batch, needed))


def _slow_calls(
    work: CallCapacity, rate: float, batch: int, held: int, lead: float, tolerance: float
) -> BatchSize:
    """Slots come at the account's pace, and these threads are slower: a step's later slots would be missed.

    So each step asks for no more than can still start in time, and the steps follow one another as the
    threads work that off; what is under way meanwhile covers the lead.
    """
    gap = work.group * (1 / work.reach - 1 / rate)
    burst = min(batch, work.group * (work.concurrency + math.floor(tolerance / gap)))
    ahead = math.ceil(work.reach * lead)
    return BatchSize(_whole(burst if held <= ahead else 0, work.group), ahead, burst / work.reach)


def _whole(want: float, group: int) -> int:
    """A call that is not full takes a full one's time: ask for whole ones."""
    count = math.ceil(max(0.0, want))
    return count if count < group else count - count % group
