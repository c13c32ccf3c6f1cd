"""The pacer: slots on the store's clock, reserved by each sender. The first of three brakes (seconds)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mailout.outbox.delivery.protocol import PACE_RECOVERY_A_SECOND, Pace

BULK_LIMIT = 50


@dataclass(frozen=True, slots=True)
class PaceState:
    """What the store keeps for one account and region."""

    next_at: float = 0.0
    factor: float = 1.0  # 1 = the full rate; less after the provider throttled
    factor_at: float = 0.0  # when it last throttled; the pace has been recovering since

    def factor_now(self, now: float, recovery: float = PACE_RECOVERY_A_SECOND) -> float:
        return min(1.0, self.factor + max(0.0, now - self.factor_at) * recovery)


@dataclass(frozen=True, slots=True)
class Reservation:
    """The slots one step may take: as many as fit within the horizon, in order, a group at a time."""

    slots_free: int
    next_at: float
    interval: float  # between groups; 0: no limit
    group: int
    factor: float
    factor_at: float

    def take(self, count: int) -> Sequence[float | None]:
        """Every message of a group has the group's slot."""
        if self.interval == 0:
            return [None] * count
        return [self.next_at + index // self.group * self.interval for index in range(count)]

    def state_after(self, count: int) -> PaceState:
        """A group that is not full takes its whole time: calls stay evenly apart."""
        groups = math.ceil(count / self.group)
        return PaceState(self.next_at + groups * self.interval, self.factor, self.factor_at)


def reserve(state: PaceState, pace: Pace, now: float, want: int) -> Reservation:
    """Slots start a round trip from now and end within the horizon, over all senders together."""
    factor, told = state.factor_now(now, pace.recovery), replace(state, factor_at=min(state.factor_at, now))
    if pace.throttled and now - state.factor_at >= 1.0:  # one throttled second slows once
        factor = max(pace.slowest, factor * pace.slower)
        told = replace(state, factor=factor, factor_at=now)
    if pace.rate == 0 and factor == 1.0:
        return Reservation(max(0, want), now, 0.0, pace.group, told.factor, told.factor_at)
    interval = pace.group * pace.slack / ((pace.rate or pace.unlimited_rate) * factor)
    base = max(state.next_at, now + pace.lead)
    if base > now + pace.lead + pace.horizon + max(2.0, 2 * interval):
        base = now + pace.lead  # the store's clock went back
    groups = math.floor((now + pace.lead + pace.horizon - base) / interval) + 1
    free = max(0, min(want, groups * pace.group))
    return Reservation(free, base, interval, pace.group, told.factor, told.factor_at)


def bulk_size(rate: float, most: int = BULK_LIMIT) -> int:
    """How many messages one bulk call may carry: whole calls, evenly apart, at least one a second."""
    if rate == 0:
        return most
    return max(1, min(most, math.floor(rate / math.ceil(rate / BULK_LIMIT))))


def tolerated_lateness(rate: float) -> float:
    """A slot missed by more is lost: half an interval, 10 ms at least."""
    return max(0.010, 0.5 / rate) if rate else math.inf
