"""The pacer: slots on the store's clock, reserved by each sender, and when its calls may start in them.

The first of three brakes (seconds).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mailout.outbox.delivery.protocol import PACE_RECOVERY_A_SECOND, Pace

BULK_LIMIT = 50
FULL_DISTANCE_RATE = 50.0
CLOSEST_PART = 0.9
"""Of 1 / rate, for rates above that. A machine wakes late now and then; if every start after it were put off
as well, that would add up until slots are lost: they may be a tenth closer until it is made up."""


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


# ── When the calls of this process started ──


@dataclass(slots=True)
class Start:
    """One call. Between its turn and the moment it starts, the machine may be busy with something else."""

    at: float
    messages: int
    has_begun: bool = False

    def began(self, now: float) -> None:
        self.at, self.has_begun = now, True

    def latest(self, now: float) -> float:
        return self.at if self.has_begun else max(self.at, now)


class Starts:
    """No two too close, and no sliding second too full, by the moments at which calls really started."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._most = math.ceil(rate)
        self._distance = 1.0 if rate <= FULL_DISTANCE_RATE else CLOSEST_PART
        self._starts: deque[Start] = deque()
        self._messages = 0  # in all of them

    def earliest(self, messages: int, now: float) -> float:
        """Not before this may a call with so many messages start."""
        if not self._rate or not self._starts:
            return now
        last = self._starts[-1]
        return max(
            now,
            last.latest(now) + self._distance * last.messages / self._rate,
            self._second_has_room_at(messages, now),
        )

    def add(self, messages: int, now: float) -> Start:
        start = Start(now, messages)
        if self._rate:
            self._starts.append(start)
            self._messages += messages
        return start

    def _second_has_room_at(self, messages: int, now: float) -> float:
        """Late calls may follow one another closely, but never so that any one second holds too many."""
        while len(self._starts) > 1 and self._starts[0].latest(now) <= now - 1.0:
            self._messages -= self._starts.popleft().messages
        over = self._messages + messages - self._most
        room_at = now
        for start in self._starts:
            if over <= 0:
                break
            over -= start.messages
            room_at = start.latest(now) + 1.0
        return room_at
