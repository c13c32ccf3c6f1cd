"""How the queue stands and how it will go on: what `status`, the poll and the dashboard show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from mailout.base.clock import YEAR_3000
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.protocol import SLACK
from mailout.outbox.delivery.single_mails import SingleMailsWaiting
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.forecast import Forecast, ForecastInput, Job, forecast_queue
from mailout.outbox.queue.limits import QUOTA_WINDOW, Limits, Usage, buckets
from mailout.outbox.queue.mailout import WAITS_FOR_A_PERSON, Mailout, Status, untaken
from mailout.outbox.queue.port import QueueStore, Request
from mailout.outbox.queue.turns import in_turn

OPEN = (Status.PROCESSING, Status.PENDING)
MOST_OPEN = 1000
SPEED_WINDOW_SECONDS = 600.0
ENOUGH_MINUTES = 3


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """The queue at one moment, in the order in which it would go on."""

    now: float
    all_paused: bool = False
    mailouts: Sequence[Mailout] = ()
    forecasts: Mapping[str, Forecast] = field(default_factory=dict)
    asked: Sequence[Request] = ()  # from outside, also for later; none of them is a mailout yet
    single_mails: SingleMailsWaiting | None = None  # what holds them up is shown with the queue

    @property
    def active(self) -> Mailout | None:
        return next((m for m in self.mailouts if m.status is Status.PROCESSING), None)

    def is_moving(self, lease: float) -> bool:
        """Whether anybody is sending: else nobody knows when anything will be done."""
        return any(
            m.status is Status.PROCESSING and m.goes_on_by(self.now, lease) is None for m in self.mailouts
        )

    @property
    def queued(self) -> Sequence[Mailout]:
        return [m for m in self.mailouts if m.status is Status.PENDING]

    @property
    def next_up(self) -> Mailout | None:
        """The one that goes on by itself first; if all wait for a person, the first of those."""
        timed = [m for m in self.queued if m.defer_reason not in WAITS_FOR_A_PERSON]
        return min(timed, key=due_at, default=next(iter(self.queued), None))


def due_at(mailout: Mailout) -> float:
    """When it waits for nothing but its turn; never, if it waits for a person."""
    if mailout.defer_reason in WAITS_FOR_A_PERSON:
        return math.inf
    return max(mailout.scheduled_at or 0.0, mailout.deferred_until or 0.0)


@dataclass(repr=False)
class QueueForecast:
    """Reads the store and plays the limits forward."""

    store: QueueStore
    limits: Limits
    rate: float  # whoever sends knows the provider's, too
    scope: str
    rehearses: bool = False
    lease: float = 120.0

    def forecast(self, mailout_id: str) -> Forecast | None:
        """None: it is over."""
        return self.snapshot().forecasts.get(mailout_id)

    def snapshot(self) -> QueueSnapshot:
        store = self.store
        now, paused = store.now(), queue_rows.all_paused(store)
        waiting, asked = (
            queue_rows.mailouts(store, statuses=OPEN, limit=MOST_OPEN),
            queue_rows.requests(store),
        )
        singles = store.single_mails_waiting(rehearsal=self.rehearses)
        if not waiting:
            return QueueSnapshot(now, paused, asked=asked, single_mails=singles)
        mailouts = in_turn(waiting, queue_rows.last_turns(store))
        forecasts = {} if paused else self._forecasts(now, mailouts)
        stopped = {
            m.id: Forecast(None, None, 0, _remaining(m), None if m.is_overdue(now) else m.defer_reason)
            for m in mailouts
        }
        return QueueSnapshot(now, paused, mailouts, stopped | forecasts, asked, singles)

    def _forecasts(self, now: float, mailouts: Sequence[Mailout]) -> dict[str, Forecast]:
        """Of those that go on by themselves, by the transport that is set, up to the first whose recipients
        nobody has counted yet: when it ends, and what comes after it begins, nobody can say. Nor of what is
        due and nobody takes up, or planned for the end of time."""
        late = {m.id for m in untaken(mailouts, now, self.lease)}
        mine = [m for m in mailouts if m.is_rehearsal == self.rehearses and m.id not in late]
        going = [m for m in mine if due_at(m) < YEAR_3000]
        going = list(takewhile(lambda mailout: mailout.frozen_at is not None, going))
        jobs = [Job(_remaining(mailout), due_at(mailout)) for mailout in going]
        made = forecast_queue(self.limits, self._forecast_input(now, going), jobs)
        return {mailout.id: one for mailout, one in zip(going, made, strict=True)}

    def _forecast_input(self, now: float, mailouts: Sequence[Mailout]) -> ForecastInput:
        store = self.store
        begun = outbox_rows.begun_since(store, now - QUOTA_WINDOW, rehearsal=self.rehearses)
        rate = self.rate / SLACK
        for mailout in mailouts:
            if mailout.status is Status.PROCESSING and mailout.started_at is not None:
                rate = slower(rate, measured(begun, max(mailout.started_at, now - SPEED_WINDOW_SECONDS), now))
        return ForecastInput(now, rate, self._usage(now), outbox_rows.first_day(store, self.scope), begun)

    def _usage(self, now: float) -> Usage:
        """Everybody's counters: they are never less than a company's own, and have the same limits."""
        used = {
            bucket.kind: outbox_rows.usage(self.store, "all", bucket.kind, bucket.key)
            for bucket in buckets(self.limits, now, rehearsal=self.rehearses)
            if bucket.starts_at <= now < bucket.ends_at
        }
        return Usage(used["hour"], used["day"], outbox_rows.quota(self.store, self.scope))


def measured(begun: Sequence[tuple[float, int]], since: float, now: float) -> float | None:
    """Messages a second in the best whole minute; None: too few minutes to tell."""
    whole = [n for minute, n in begun if minute >= since and minute + 60 <= now]
    return max(whole) / 60 if len(whole) >= ENOUGH_MINUTES else None


def slower(rate: float, found: float | None) -> float:
    """A rate of 0 is no limit."""
    if found is None:
        return rate
    return min(rate, found) if rate else found


def _remaining(mailout: Mailout) -> int:
    return mailout.ledger.pending + mailout.ledger.in_flight
