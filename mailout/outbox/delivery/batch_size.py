"""How much a sender asks for in one step, and how soon again: enough to keep its threads busy, no more."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mailout.outbox.delivery.concurrency import UNLIMITED_BULK_RATE

TRIPS_SHARE = 0.1
"""Of the time, at most so much is spent on the way to the store and back."""
LARGER_STEPS = 10
"""A step is at most so many times as large for that."""


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
