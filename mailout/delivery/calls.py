"""One transport call: wait for the slot, see that it may still leave, journal, call, keep the result."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

from mailout.delivery.lanes import Group
from mailout.delivery.pacing import calls_a_second, tolerated_lateness
from mailout.delivery.protocol import (
    Attempt,
    Claimed,
    Outcome,
    OutcomeKind,
    Result,
    RetryPlan,
    Timing,
)
from mailout.delivery.retry import decide
from mailout.errors import HomeUnwritable, MailoutError, StoreUnavailable
from mailout.ports import Clock, Journal, Mail, Transport

CLOSEST = 0.9
"""Of 1 / rate. Starts are that far apart; but a machine wakes late now and then. If every start after it were
put off as well, that would add up until slots are lost: they may be a tenth closer until it is made up."""
_FAILURES = (OutcomeKind.TRANSIENT, OutcomeKind.UNKNOWN)


class Caller:
    """Runs in the lanes; its results wait here until the sender has recorded them."""

    def __init__(
        self,
        transport: Transport,
        compose: Callable[[Claimed], Mail],
        clock: Clock,
        rate: float,
        group_size: int,
        timing: Timing,
        retry: RetryPlan,
        circuit_failures: int = 0,
    ) -> None:
        self._transport = transport
        self._compose = compose
        self._clock = clock
        self._timing = timing
        self._retry = retry
        self._circuit_failures = circuit_failures
        self._interval = group_size / rate if rate else 0.0
        self._free_at = 0.0  # no call of this process is to start earlier
        self._starts: deque[float] = deque(maxlen=calls_a_second(rate, group_size))
        self.tolerance = tolerated_lateness(rate)
        self._lock = threading.Lock()
        self._results: list[tuple[float, Result]] = []  # and when they were known
        self._withdrawn: list[Attempt] = []
        self.journal: Journal | None = None
        self.lease_until = 0.0
        self.latency = 0.0
        self.throttled = threading.Event()
        self.refused: Outcome | None = None
        self.quota: Outcome | None = None
        self.unwritable: HomeUnwritable | None = None  # the journal: nothing may be called without it
        self.failures_in_a_row = 0  # calls, and each message that is in doubt
        self.last_failure: Outcome | None = None

    @property
    def must_end(self) -> bool:
        return (
            self.refused is not None
            or self.quota is not None
            or self.unwritable is not None
            or self.circuit_open
        )

    @property
    def circuit_open(self) -> bool:
        return self.failures_in_a_row >= self._circuit_failures > 0

    # ── for the sender ──

    def peek(self) -> tuple[Sequence[Result], Sequence[Attempt]]:
        """What has ended and is not recorded yet."""
        now = self._clock.monotonic()
        with self._lock:
            results = [replace(result, age=now - known) for known, result in self._results]
            return results, list(self._withdrawn)

    def forget(self, results: int, withdrawn: int) -> None:
        """The first so many are recorded."""
        with self._lock:
            del self._results[:results]
            del self._withdrawn[:withdrawn]

    # ── in a lane ──

    def prepare(self, group: Group) -> Callable[[], None] | None:
        """Put the mails together, wait for the slot, and see that they may still leave."""
        mails, rows = self._composed(group.rows)
        if not mails:
            return None
        if not self._may_start(group):
            with self._lock:
                self._withdrawn.extend(row.attempt for row in rows)
            return None
        return lambda: self._call(mails, rows)

    def _may_start(self, group: Group) -> bool:
        """At its slot, not too late for it, and surely within the lease."""
        now = self._clock.monotonic()
        if group.start is not None:
            start = max(group.start, self._free_at, self._second_has_room_at(), now)
            if start - group.start > self.tolerance:
                return False
            self._clock.sleep(start - now)
            now = self._clock.monotonic()
            self._free_at = now + CLOSEST * self._interval
        if self.must_end or now >= self.lease_until - self._timing.call_limit - self._timing.margin:
            return False
        self._starts.append(now)
        return True

    def _second_has_room_at(self) -> float:
        """Late calls may follow one another closely, but never so that any one second holds too many."""
        full = self._starts and len(self._starts) == self._starts.maxlen
        return self._starts[0] + 1.0 if full else 0.0

    def _call(self, mails: Sequence[Mail], rows: Sequence[Claimed]) -> None:
        journal = self.journal
        if journal is not None:
            try:
                journal.call([row.attempt for row in rows])
            except HomeUnwritable as error:
                with self._lock:
                    self.unwritable = self.unwritable or error
                    self._withdrawn.extend(row.attempt for row in rows)
                return
        began = self._clock.monotonic()
        outcomes = self._transport.send(mails)
        self._keep(rows, outcomes, self._clock.monotonic() - began, journal)

    def _composed(self, rows: Sequence[Claimed]) -> tuple[list[Mail], list[Claimed]]:
        """A message that cannot be put together fails alone, before anything is called."""
        mails, good = [], []
        for row in rows:
            try:
                mails.append(self._compose(row))
                good.append(row)
            except StoreUnavailable:  # its content could not be read just now: that is not its fault
                with self._lock:
                    self._withdrawn.append(row.attempt)
            except (MailoutError, KeyError) as error:
                outcome = Outcome(
                    OutcomeKind.INVALID,
                    code="INVALID_PAYLOAD",
                    category="VALIDATION_ERROR",
                    message=f"no value for {error}" if isinstance(error, KeyError) else str(error),
                )
                self._ended([decide(outcome, row, self._retry, 0)])
        return mails, good

    def _keep(
        self, rows: Sequence[Claimed], outcomes: Sequence[Outcome], took: float, journal: Journal | None
    ) -> None:
        pairs = list(zip(rows, outcomes, strict=True))
        if journal is not None:
            journal.answered(
                {row.attempt: o.message_id or "-" for row, o in pairs if o.kind is OutcomeKind.SENT},
                [row.attempt for row, o in pairs if o.kind not in (OutcomeKind.SENT, OutcomeKind.UNKNOWN)],
            )
        results = [decide(outcome, row, self._retry, round(took * 1000)) for row, outcome in pairs]
        self._ended(results)
        with self._lock:
            self.latency = took if not self.latency else 0.9 * self.latency + 0.1 * took
            self._learn(outcomes)

    def _ended(self, results: Sequence[Result]) -> None:
        now = self._clock.monotonic()
        with self._lock:
            self._results.extend((now, result) for result in results)

    def _learn(self, outcomes: Sequence[Outcome]) -> None:
        """What the outcomes of one call say about the calls that follow."""
        for outcome in outcomes:
            if outcome.kind is OutcomeKind.THROTTLED:
                self.throttled.set()
            elif outcome.kind is OutcomeKind.STOP:
                self.refused = self.refused or outcome
            elif outcome.kind is OutcomeKind.QUOTA:
                self.quota = self.quota or outcome
        if all(outcome.kind in _FAILURES for outcome in outcomes):
            in_doubt = sum(1 for outcome in outcomes if outcome.kind is OutcomeKind.UNKNOWN)
            self.failures_in_a_row += max(1, in_doubt)
            self.last_failure = outcomes[-1]
        else:
            self.failures_in_a_row = 0
