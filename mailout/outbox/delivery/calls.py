"""One transport call: wait for the slot, check that it may still start, journal, call, keep the result."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from mailout.base.clock import Clock
from mailout.base.errors import HomeUnwritable, MailoutError, NotFound, StoreError, StoreUnavailable
from mailout.outbox.delivery import error_codes
from mailout.outbox.delivery.call_pool import PreparedCall
from mailout.outbox.delivery.concurrency import CallsInFlight
from mailout.outbox.delivery.options import CallTime, SenderOptions
from mailout.outbox.delivery.pacing import Start, Starts, tolerated_lateness
from mailout.outbox.delivery.port import Journal, Mail, Transport
from mailout.outbox.delivery.protocol import Attempt, Claimed, Outcome, OutcomeKind, Result
from mailout.outbox.delivery.retry import decide
from mailout.outbox.delivery.throttling import Throttling

JOURNAL_AHEAD_SECONDS = 0.001
"""A call is journaled so many seconds before its slot: in the slot itself, waking up and writing would take a
tenth of a millisecond, and at fifty a second that adds up until a slot is lost."""
CLOCK_RESOLUTION_SECONDS = 1e-9
"""Of the clocks: less is no time to wait."""
MOST_UNVERIFIED_IN_A_ROW = 3
"""Recipients of a mailout that may be refused in a row as not verified: more would fail the same way."""
_FAILURES = (OutcomeKind.TRANSIENT, OutcomeKind.UNKNOWN)


class Caller:
    """Runs in the pool's threads; its results wait here until the sender has recorded them."""

    def __init__(
        self,
        transport: Transport,
        compose: Callable[[Claimed], Mail],
        clock: Clock,
        options: SenderOptions,
        throttling: Throttling,
        group_size: int,
    ) -> None:
        self._transport = transport
        self._compose = compose
        self._clock = clock
        self._options = options
        self.throttling = throttling
        concurrency = 1 if options.inline else options.concurrency
        self.in_flight = CallsInFlight(concurrency, options.rate, group_size)
        self._starts = Starts(options.rate)
        self.tolerance = tolerated_lateness(options.rate)
        self._lock = threading.Lock()
        self._results: list[tuple[float, Result]] = []  # and when they were known
        self._withdrawn: list[Attempt] = []
        self.journal: Journal | None = None
        self._call_until = (0.0, 0.0)  # on the monotonic clock, and on the wall
        self.filled = 0.0  # how many messages the last calls held
        self.call_time = CallTime()  # of all
        self.throttled = threading.Event()
        self.refused: Outcome | None = None
        self.quota: Outcome | None = None
        self.broken: StoreError | None = None  # the journal, or a content: nothing can be called without it
        self.failures_in_a_row = 0  # calls, and each message that is in doubt
        self.last_failure: Outcome | None = None
        self._unverified = 0  # recipients of a mailout, in a row

    @property
    def throttled_too_long(self) -> Outcome | None:
        """The last throttle, after a minute of nothing else."""
        return self.throttling.outcome if self.throttling.is_enough else None

    @property
    def must_end(self) -> bool:
        return (
            self.refused is not None or self.quota is not None or self.broken is not None or self.circuit_open
        )

    @property
    def circuit_open(self) -> bool:
        return self.failures_in_a_row >= self._options.circuit_failures > 0

    # ── for the sender ──

    def renew_lease(self, asked_at: float, wall: float) -> None:
        """A step that was asked then is answered: calls may begin until its lease is nearly over."""
        timing = self._options.timing
        usable = timing.lease - timing.call_limit - timing.margin
        self._call_until = (asked_at + usable, wall + usable)

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

    # ── in a thread of the pool ──

    def calls_allowed(self) -> int:
        return self.in_flight.allowed

    def prepare(self, rows: Sequence[Claimed]) -> PreparedCall | None:
        mails, good = self._composed(rows)
        return PreparedCall(mails, good) if mails else None

    def wait_for_slot(self, prepared: PreparedCall, start: float | None) -> Callable[[], None] | None:
        """Just before its slot, not too late for it, and surely within the lease."""
        size = len(prepared.rows)
        now = self._clock.monotonic()
        earliest = now
        if start is not None:
            earliest = max(start, self._starts.earliest(size, now))
            if earliest - start > self.tolerance:
                return None
            # The call before may still start later than planned.
            while earliest - JOURNAL_AHEAD_SECONDS - now > CLOCK_RESOLUTION_SECONDS:
                self._clock.sleep(earliest - JOURNAL_AHEAD_SECONDS - now)
                now = self._clock.monotonic()
                earliest = max(start, self._starts.earliest(size, now))
        if self.must_end or self._is_lease_over(earliest):
            return None
        begun = self._starts.add(size, earliest)
        return lambda: self._call(prepared, begun)

    def _is_lease_over(self, at: float) -> bool:
        """By either clock: that a virtual machine stood still, only the wall clock may tell."""
        until, wall = self._call_until
        return at >= until or self._clock.now() >= wall

    def _call(self, prepared: PreparedCall, start: Start) -> None:
        journal, attempts = self.journal, [row.attempt for row in prepared.rows]
        if journal is not None:
            try:
                journal.call(attempts)
            except HomeUnwritable as error:
                start.began(self._clock.monotonic())  # it never will; those behind it must not wait for it
                with self._lock:
                    self.broken = self.broken or error
                    self._withdrawn.extend(attempts)
                return
        self._clock.sleep(start.at - self._clock.monotonic())
        began = self._clock.monotonic()
        start.began(began)
        if self._is_lease_over(began):  # the machine slept meanwhile: others may have sent these
            if journal is not None:
                journal.answered({}, attempts)
            with self._lock:
                self._withdrawn.extend(attempts)
            return
        outcomes = self._transport.send(prepared.mails)
        self._keep(prepared.rows, outcomes, self._clock.monotonic() - began, journal)

    def _composed(self, rows: Sequence[Claimed]) -> tuple[list[Mail], list[Claimed]]:
        """A message that cannot be put together fails alone, before anything is called."""
        mails, good = [], []
        for row in rows:
            try:
                mails.append(self._compose(row))
                good.append(row)
            except StoreError as error:  # its content could not be read: that is not its fault
                if row.mailout_id is None and type(error) in (StoreError, NotFound):
                    # Its own content alone: the single mails of others must not wait for it.
                    outcome = Outcome(OutcomeKind.TRANSIENT, code="CONTENT_UNREADABLE", message=str(error))
                    self._ended([decide(outcome, row, self._options.retry, 0)])
                    continue
                with self._lock:
                    self._withdrawn.append(row.attempt)
                    if not isinstance(error, StoreUnavailable):  # which the next step waits for
                        self.broken = self.broken or error
            except (MailoutError, KeyError) as error:
                outcome = Outcome(
                    OutcomeKind.INVALID,
                    code="INVALID_PAYLOAD",
                    category="VALIDATION_ERROR",
                    message=f"no value for {error}" if isinstance(error, KeyError) else str(error),
                )
                self._ended([decide(outcome, row, self._options.retry, 0)])
        return mails, good

    def _keep(
        self, rows: Sequence[Claimed], outcomes: Sequence[Outcome], took: float, journal: Journal | None
    ) -> None:
        with self._lock:
            outcomes = [self._or_sandbox(row, told) for row, told in zip(rows, outcomes, strict=True)]
        pairs = list(zip(rows, outcomes, strict=True))
        if journal is not None:
            journal.answered(
                {row.attempt: o.provider_message_id or "-" for row, o in pairs if o.kind is OutcomeKind.SENT},
                [row.attempt for row, o in pairs if o.kind not in (OutcomeKind.SENT, OutcomeKind.UNKNOWN)],
            )
        now = self._clock.monotonic()
        with self._lock:
            self._learn(rows, outcomes, now)
            for row, outcome in pairs:
                self._results.append((now, self._decided(row, outcome, round(took * 1000))))
            self.in_flight.learn(outcomes, took)
            self.filled = 0.9 * self.filled + 0.1 * len(rows) if self.filled else len(rows)
            self.call_time += CallTime(calls=1, messages=len(rows), calling=took)

    def _or_sandbox(self, row: Claimed, outcome: Outcome) -> Outcome:
        """The first few recipients of a mailout that are not verified fail; then it is the account's matter,
        and the others wait. Each single mail fails for itself: the next one may go to somebody verified."""
        if outcome.kind is OutcomeKind.SENT:
            self._unverified = 0
        if row.mailout_id is None or outcome.code != error_codes.RECIPIENT.code:
            return outcome
        self._unverified += 1
        sandbox = replace(
            outcome,
            kind=OutcomeKind.STOP,
            code=error_codes.SANDBOX.code,
            category=error_codes.SANDBOX.category,
            message=f"{MOST_UNVERIFIED_IN_A_ROW} recipients in a row are not verified:"
            " the account is still in the sandbox.",
        )
        if self._unverified >= MOST_UNVERIFIED_IN_A_ROW:
            self.refused = self.refused or sandbox
        return sandbox if self._unverified > MOST_UNVERIFIED_IN_A_ROW else outcome

    def _decided(self, row: Claimed, outcome: Outcome, took_ms: int) -> Result:
        if outcome.kind is not OutcomeKind.THROTTLED:
            return decide(outcome, row, self._options.retry, took_ms)
        id = row.attempt.id
        spent = self.throttling.spends_an_attempt(id, must_end=self._options.retry.dead_letters)
        pause = None if spent else self.throttling.pause(id)
        return decide(outcome, row, self._options.retry, took_ms, throttle_pause=pause)

    def _ended(self, results: Sequence[Result]) -> None:
        now = self._clock.monotonic()
        with self._lock:
            self._results.extend((now, result) for result in results)

    def _learn(self, rows: Sequence[Claimed], outcomes: Sequence[Outcome], now: float) -> None:
        """What the outcomes of one call say about the calls that follow."""
        self.throttling.learn(rows, outcomes, now)
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
