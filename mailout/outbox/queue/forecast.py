"""When a mailout will have been sent, if nothing else happens: the limits' own rules, played forward.

It asks `why_not_now`, as the engine does, so the two cannot disagree about what a limit means.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from mailout.outbox.queue.limits import (
    QUOTA_WINDOW,
    Defer,
    Limits,
    Usage,
    began_on,
    hour_start,
    local,
    midnight,
    next_hour,
    quota_frees,
    why_not_now,
    window_closes,
)
from mailout.outbox.queue.mailout import DeferReason

MOST_STEPS = 5_000
"""Hours and days that are looked at, for the whole queue: whoever asks should not wait for the answer."""
TINY = 1e-6


@dataclass(frozen=True, slots=True)
class Forecast:
    """When the first and the last message leave (None: nobody can say), and how many leave another day."""

    begins_at: float | None
    ends_at: float | None
    today: int = 0
    later: int = 0
    limited_by: DeferReason | None = None  # the first limit in its way


@dataclass(frozen=True, slots=True)
class ForecastInput:
    """What a forecast begins with."""

    now: float
    rate: float  # messages a second, as they really leave; 0: as fast as you like
    usage: Usage = field(default_factory=Usage)
    first_day: str | None = None  # of sending, for the warm-up
    begun: Sequence[tuple[float, int]] = ()  # in the last 24 hours, by the minute: what will free the quota


@dataclass(frozen=True, slots=True)
class Job:
    """A mailout, as far as a forecast cares: how many have yet to leave, and not before when."""

    pending: int
    due: float = 0.0


def forecast_queue(limits: Limits, forecast_input: ForecastInput, jobs: Sequence[Job]) -> Sequence[Forecast]:
    """Of all mailouts, in the order of their turns: whoever is due goes, through the same limits."""
    play = _Simulation(limits, forecast_input)
    tonight = midnight(limits, forecast_input.now)
    made: dict[int, Forecast] = {}
    while len(made) < len(jobs):
        remaining = [place for place in range(len(jobs)) if place not in made]
        earliest = min(remaining, key=lambda place: jobs[place].due)
        place = next((place for place in remaining if jobs[place].due <= play.at), earliest)
        made[place] = _sent(play, jobs[place], tonight)
    return [made[place] for place in range(len(jobs))]


def _sent(play: _Simulation, job: Job, tonight: float) -> Forecast:
    play.go_to(job.due)
    play.limited_by = None
    first: float | None = None
    today = 0.0
    for starts_at, n in play.periods(job.pending):
        first = starts_at if first is None else first
        today += n if starts_at < tonight else 0.0
    return Forecast(
        begins_at=first if job.pending else play.at,
        ends_at=None if play.lost else play.at,
        today=round(today),
        later=job.pending - round(today),
        limited_by=play.limited_by,
    )


class _Simulation:
    """The clock, the counters and the quota, moved forward. Parts of messages count: edges lose none."""

    def __init__(self, limits: Limits, forecast_input: ForecastInput) -> None:
        self._limits = limits
        self._rate = forecast_input.rate
        self._first_day = forecast_input.first_day
        self._window = list(forecast_input.begun)  # what the provider still counts, the oldest first
        self._hour, self._day = hour_start(limits, forecast_input.now), midnight(limits, forecast_input.now)
        usage = forecast_input.usage
        self._sent_in_hour, self._sent_on_day = float(usage.hour), float(usage.day)
        self._quota = math.inf if usage.quota is None else float(usage.quota)
        self.at = forecast_input.now
        self.limited_by: DeferReason | None = None
        self.lost = False  # nobody can say how it goes on
        self._steps = 0

    def periods(self, messages: int) -> Iterator[tuple[float, float]]:
        """When messages leave without a break, within one hour of one day; and how many."""
        remaining = float(messages)
        while remaining > TINY and not self.lost:
            self._steps += 1
            wait = self._why_not(remaining)
            if wait is None:
                starts_at, n = self.at, self._period(remaining)
                yield starts_at, n
                remaining -= n
                continue
            self.limited_by = self.limited_by or wait.reason
            self.lost = wait.until is None or self._steps > MOST_STEPS
            self.go_to(wait.until or self.at)

    def _why_not(self, remaining: float) -> Defer | None:
        """As the engine would defer it; a quota that nobody knows to be freed has no time."""
        quota = None if self._quota == math.inf else math.floor(self._quota + TINY)
        usage = Usage(math.floor(self._sent_in_hour + TINY), math.floor(self._sent_on_day + TINY), quota)
        wait = why_not_now(self._limits, self.at, usage, self._first_day)
        if wait is not None and wait.reason is DeferReason.QUOTA_EXHAUSTED:
            return replace(wait, until=quota_frees(self._window, math.ceil(remaining), self.at))
        return wait

    def _period(self, remaining: float) -> float:
        """How many leave until the hour, the day or the window ends, or a counter is full."""
        limits, start = self._limits, self.at
        today = local(limits, start).date()
        self._first_day = self._first_day or today.isoformat()
        most = limits.most_on(today, began_on(self._first_day, today))
        until = min(next_hour(limits, start), midnight(limits, start), window_closes(limits, start))
        room = min(
            self._quota,
            math.inf if limits.per_hour is None else limits.per_hour - self._sent_in_hour,
            math.inf if most is None else most - self._sent_on_day,
        )
        n = min(remaining, room, (until - start) * self._rate if self._rate else math.inf)
        self._sent_in_hour += n
        self._sent_on_day += n
        self._quota -= n
        end = start + n / self._rate if self._rate else start
        self.go_to(until if math.isclose(end, until, abs_tol=TINY) else end)
        self._window.append((self.at, math.ceil(n)))
        return n

    def go_to(self, moment: float) -> None:
        """Another hour or day begins with empty counters; what was sent a day ago is free again."""
        self.at = max(self.at, moment)
        if hour_start(self._limits, self.at) != self._hour:
            self._hour, self._sent_in_hour = hour_start(self._limits, self.at), 0.0
        if midnight(self._limits, self.at) != self._day:
            self._day, self._sent_on_day = midnight(self._limits, self.at), 0.0
        while self._window and self._window[0][0] + 60 + QUOTA_WINDOW <= self.at:
            self._quota += self._window.pop(0)[1]
