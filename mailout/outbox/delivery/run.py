"""One run of a sender: the loop of steps, until there is nothing left or something ends it."""

from __future__ import annotations

import logging
import math
from dataclasses import replace

from mailout.base.errors import HomeUnwritable, StoreUnavailable
from mailout.outbox.delivery.batch_size import BatchSize, CallCapacity, batch_size
from mailout.outbox.delivery.options import CallTime, Ended, RunReport
from mailout.outbox.delivery.protocol import Halt, StepReply
from mailout.outbox.delivery.recovery import reap
from mailout.outbox.delivery.session import HORIZON, LEAD, Session
from mailout.outbox.delivery.store_retry import pause, pause_after

log = logging.getLogger("mailout.sender")

IDLE_SECONDS = 0.5


class Run:
    """How much to ask for and when, what to wait for, and how it ends."""

    def __init__(self, session: Session, deadline: float | None, *, until_idle: bool = False) -> None:
        self._session = session
        self._store = session.store
        self._clock = session.clock
        self._options = session.options
        self._stop = session.stop
        self._caller = session.caller
        self._pool = session.pool
        self._group_size = session.group_size
        self._deadline = deadline
        self._until_idle = until_idle
        self._asked = False  # for something, by the last step
        self._began = self._clock.monotonic()

    # ── the loop ──

    def run(self) -> RunReport:
        self._session.open_when_it_answers()
        try:
            while True:
                want = self._want()
                reply = self._session.step(want)
                self._asked = want > 0
                if reply is not None and reply.rows:
                    self._pool.offer(self._session.groups(reply))
                self._reap_when_idle(reply)
                ending = self._ending(reply)
                if ending is not None:
                    return self._finish(ending)
                self._wait(reply)
        except BaseException:
            self._end_abruptly()
            raise

    def _ending(self, reply: StepReply | None) -> RunReport | None:
        """Whether this is the end, and why."""
        if self._caller.unwritable is not None:
            raise self._caller.unwritable
        refused = self._caller.refused
        if refused is not None:
            return RunReport(Ended.REFUSED, self._session.ledger, outcome=refused)
        if self._caller.quota is not None:
            return RunReport(Ended.LIMITED, self._session.ledger, limited="quota", outcome=self._caller.quota)
        if self._caller.circuit_open:
            return RunReport(Ended.CIRCUIT, self._session.ledger, outcome=self._caller.last_failure)
        throttled = self._caller.throttled_too_long
        if throttled is not None:
            return RunReport(Ended.THROTTLED, self._session.ledger, outcome=throttled)
        if self._stop.is_set():
            return RunReport(Ended.STOPPED, self._session.ledger)
        if reply is None:
            return None  # away: a time slice that ended now would end in waiting, too
        if self._deadline is not None and self._clock.monotonic() >= self._deadline:
            return RunReport(Ended.DEADLINE, self._session.ledger)
        if reply.halt is not None:
            ended = Ended.STOPPED if reply.halt is Halt.STOP else Ended.HALTED
            return RunReport(ended, self._session.ledger, halt=reply.halt)
        if reply.limited is not None and not self._session.begun and not self._others_may_give_back(reply):
            return RunReport(Ended.LIMITED, self._session.ledger, limited=reply.limited)
        if reply.ledger is not None and reply.ledger.settled and not self._session.begun:
            return RunReport(Ended.DONE, reply.ledger)
        if self._until_idle and not reply.rows and not self._session.begun and self._none_due(reply):
            return RunReport(Ended.DONE, reply.ledger)
        return None

    def _none_due(self, reply: StepReply) -> bool:
        passed = reply.next_due_at is None or reply.next_due_at > reply.now
        return self._asked and passed and reply.next_slot_at is None and not self._session.withdraw

    def _others_may_give_back(self, reply: StepReply) -> bool:
        """Other senders of this mailout have attempts in hand: a withdrawn one makes room again."""
        return reply.ledger is not None and reply.ledger.in_flight > 0

    # ── waiting ──

    def _wait(self, reply: StepReply | None) -> None:
        """Until there is something to tell the store or to ask of it."""
        longest = self._session.last_good + self._options.timing.lease / 4 - self._clock.monotonic()
        if self._deadline is not None:
            longest = min(longest, self._deadline - self._clock.monotonic())
        longest = max(0.01, longest)
        if reply is None:
            self._wait_for_store()
        elif self._session.begun:
            wish = self._batch_size()
            limit = min(longest, self._until_slot(reply), 1.0)
            if reply.rows:
                self._pool.wait(wish.low, limit)
            else:
                self._pool.wait_for_news(limit)
            self._let_calls_run(min(longest, self._session.last_good + wish.period - self._clock.monotonic()))
        elif self._session.serves_single_mails and not reply.rows and not self._session.withdraw:
            self._wait_for_single_mails(min(longest, self._until_due(reply)), longest)
        elif not self._session.withdraw:
            self._pause(min(longest, self._until_due(reply)))

    def _wait_for_single_mails(self, first: float, longest: float) -> None:
        """An idle hour costs no writes: only looks, until one comes in or the lease has to be renewed."""
        until = self._clock.monotonic() + longest
        self._pause(min(first, IDLE_SECONDS))
        while not self._stop.is_set() and not self._session.has_work():
            left = until - self._clock.monotonic()
            if left <= 0:
                return
            self._pause(min(IDLE_SECONDS, left))

    def _wait_for_store(self) -> None:
        """Calls in hand go on meanwhile; their results are kept until it is back."""
        until = self._clock.monotonic() + pause_after(self._session.outages)
        self._pool.wait(0, until - self._clock.monotonic())
        self._pause(until - self._clock.monotonic())

    def _let_calls_run(self, seconds: float) -> None:
        until = self._clock.monotonic() + seconds
        while (left := until - self._clock.monotonic()) > 0 and not self._stop.is_set():
            if held := self._pool.held():
                self._pool.wait(held - 1, left)
            else:
                self._pause(left)

    def _until_slot(self, reply: StepReply | None) -> float:
        if reply is None or reply.next_slot_at is None:
            return math.inf
        return max(0.001, reply.next_slot_at - reply.now - HORIZON / 2)

    def _until_due(self, reply: StepReply | None) -> float:
        """Nothing is in our hands: how long until something can be."""
        if reply is None or reply.rows:
            return 0.0
        if reply.limited is not None:
            return IDLE_SECONDS
        if reply.next_slot_at is not None:
            return self._until_slot(reply)
        if reply.next_due_at is not None and reply.next_due_at > reply.now:
            return reply.next_due_at - reply.now
        if reply.next_due_at is not None:
            self._session.look_again()
            return 0.0
        return IDLE_SECONDS  # others hold the rest

    def _reap_when_idle(self, reply: StepReply | None) -> None:
        """Others hold the rest, or have died with it: see which, by their journals first."""
        if (
            reply is None
            or self._session.begun
            or reply.rows
            or reply.ledger is None
            or not reply.ledger.in_flight
        ):
            return
        try:
            reap(self._store, self._session.journals, self._options.timing.reap_grace)
        except StoreUnavailable as error:
            log.warning("waiting for the store: %s", error)

    def _pause(self, seconds: float) -> None:
        pause(self._clock, self._stop, seconds)

    # ── the end ──

    def _finish(self, report: RunReport, *, in_haste: bool = False) -> RunReport:
        """Calls in hand end, the rest is withdrawn, one last step tells all of it.

        It waits for a store that is away, unless somebody waits for us to end: the journal knows it, too.
        """
        self._session.release_unstarted()
        self._pool.join(self._options.timing.call_limit + self._options.timing.margin)
        give_up = self._clock.monotonic() + self._options.timing.lease / 4
        while True:
            # What a lost step may have begun is fetched (and withdrawn) before the session closes.
            close = not self._session.recover
            if self._session.step(0, close=close) is not None and close:
                break
            if (in_haste or self._stop.is_set()) and self._clock.monotonic() > give_up:
                raise StoreUnavailable(
                    remedy="What was sent is in this machine's journal; the next start takes it over."
                )
            self._clock.sleep(pause_after(self._session.outages))
        self._session.close_journal()
        if report.ended is Ended.THROTTLED:
            self._caller.throttling.clear()
        took = self._clock.monotonic() - self._began
        return replace(
            report,
            ledger=self._session.ledger,
            call_time=self._caller.call_time + CallTime(seconds=took),
        )

    def _end_abruptly(self) -> None:
        """A signal or something unforeseen: end as cleanly as may be; the journal covers the rest."""
        self._session.recover = True  # the step that was interrupted may have begun something
        try:
            self._finish(RunReport(Ended.STOPPED, self._session.ledger), in_haste=True)
        except HomeUnwritable as error:  # most often the one that ended it, which is shown
            log.info("the session could not be closed (%s); its journal stays for the next start", error)
            self._session.leave_journal()
        except Exception as error:  # noqa: BLE001 (the first error is the one to tell)
            log.warning("the session could not be closed (%s); its journal stays for the next start", error)
            self._session.leave_journal()

    # ── how much ──

    def _batch_size(self) -> BatchSize:
        options, in_flight = self._options, self._caller.in_flight
        return batch_size(
            CallCapacity(in_flight.allowed, self._group_size, in_flight.latency, self._caller.filled),
            rate=options.rate,
            batch=options.batch_size,
            held=self._pool.held(),
            lead=LEAD + self._session.round_trip,
            round_trip=self._session.round_trip,
            tolerance=self._caller.tolerance,
            left=math.inf if self._deadline is None else self._deadline - self._clock.monotonic(),
        )

    def _want(self) -> int:
        """Nothing once something has ended it, or while a lost step is unexplained."""
        if self._session.recover or self._stop.is_set() or self._caller.must_end:
            return 0
        return self._batch_size().want
