"""When the calls of this process started: how soon may the next one?"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

FULL_DISTANCE_RATE = 50.0
CLOSEST_PART = 0.9
"""Of 1 / rate, for rates above that. A machine wakes late now and then; if every start after it were put off
as well, that would add up until slots are lost: they may be a tenth closer until it is made up."""


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
