"""One run of a sender: the loop of steps, until everything is sent or something ends it."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from mailout.base.errors import HomeUnwritable, StoreUnavailable
from mailout.outbox.delivery.concurrency import BatchSize, CallCapacity, batch_size
from mailout.outbox.delivery.options import CallTime, Ended, RunReport
from mailout.outbox.delivery.protocol import Halt, StepReply
from mailout.outbox.delivery.session import SLOT_HORIZON_SECONDS, SLOT_LEAD_SECONDS, Session
from mailout.outbox.delivery.store_retry import pause, pause_after

log = logging.getLogger("mailout.sender")

IDLE_SECONDS = 0.5


@dataclass(eq=False, repr=False, kw_only=True)
class Run:
    """How much to ask for and when, what to wait for, and how it ends."""

    session: Session
    reap: Callable[[], object]  # gives up senders that have disappeared
    deadline: float | None
    until_idle: bool = False

    def __post_init__(self) -> None:
        self.caller, self.pool, self.stop = self.session.caller, self.session.pool, self.session.stop
        self.clock, self.options = self.session.clock, self.session.options
        self._asked = False  # for something, by the last step
        self._began = self.clock.monotonic()

    # ── the loop ──

    def run(self) -> RunReport:
        self.session.open_when_it_answers()
        try:
            while True:
                want = self._want()
                reply = self.session.step(want)
                self._asked = want > 0
                if reply is not None and reply.rows:
                    self.pool.offer(self.session.groups(reply))
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
        if self.caller.broken is not None:
            raise self.caller.broken
        refused = self.caller.refused
        if refused is not None:
            return RunReport(Ended.REFUSED, self.session.ledger, outcome=refused)
        if self.caller.quota is not None:
            return RunReport(Ended.LIMITED, self.session.ledger, limited="quota", outcome=self.caller.quota)
        if self.caller.circuit_open:
            return RunReport(Ended.CIRCUIT, self.session.ledger, outcome=self.caller.last_failure)
        throttled = self.caller.throttled_too_long
        if throttled is not None:
            return RunReport(Ended.THROTTLED, self.session.ledger, outcome=throttled)
        if self.stop.is_set():
            return RunReport(Ended.STOPPED, self.session.ledger)
        if reply is None:
            return None  # no answer: a time slice that ended now would only wait elsewhere
        if self.deadline is not None and self.clock.monotonic() >= self.deadline:
            return RunReport(Ended.DEADLINE, self.session.ledger)
        if reply.halt is not None:
            ended = Ended.STOPPED if reply.halt is Halt.STOP else Ended.HALTED
            return RunReport(ended, self.session.ledger, halt=reply.halt)
        if reply.ledger is not None and reply.ledger.settled and not self.session.holds_any:
            return RunReport(Ended.DONE, reply.ledger)  # also if the last one was the last within a limit
        if reply.limited is not None and not self.session.holds_any and not self._others_may_give_back(reply):
            return RunReport(Ended.LIMITED, self.session.ledger, limited=reply.limited)
        if self.until_idle and not reply.rows and not self.session.holds_any and self._none_due(reply):
            return RunReport(Ended.DONE, reply.ledger)
        return None

    def _none_due(self, reply: StepReply) -> bool:
        passed = reply.next_due_at is None or reply.next_due_at > reply.now
        return self._asked and passed and reply.next_slot_at is None and not self.session.has_withdrawals

    def _others_may_give_back(self, reply: StepReply) -> bool:
        """Other senders of this mailout have attempts begun: a withdrawn one makes room again."""
        return reply.ledger is not None and reply.ledger.in_flight > 0

    # ── waiting ──

    def _wait(self, reply: StepReply | None) -> None:
        """Until there is something to tell the store or to ask of it."""
        longest = self.session.last_good + self.options.timing.lease / 4 - self.clock.monotonic()
        if self.deadline is not None:
            longest = min(longest, self.deadline - self.clock.monotonic())
        longest = max(0.01, longest)
        if reply is None:
            self._wait_for_store()
        elif self.session.holds_any:
            wish = self._batch_size()
            limit = min(longest, self._until_slot(reply), 1.0)
            if reply.rows:
                self.pool.wait(wish.low, limit)
            else:
                self.pool.wait_for_news(limit)
            self._let_calls_run(min(longest, self.session.last_good + wish.period - self.clock.monotonic()))
        elif self.session.serves_single_mails and not reply.rows and not self.session.has_withdrawals:
            self._wait_for_single_mails(min(longest, self._until_due(reply)), longest)
        elif not self.session.has_withdrawals:
            self._pause(min(longest, self._until_due(reply)))

    def _wait_for_single_mails(self, first: float, longest: float) -> None:
        """An idle hour costs no writes: only looks, until one comes in or the lease has to be renewed."""
        until = self.clock.monotonic() + longest
        self._pause(min(first, IDLE_SECONDS))
        while not self.stop.is_set() and not self.session.has_work():
            remaining = until - self.clock.monotonic()
            if remaining <= 0:
                return
            self._pause(min(IDLE_SECONDS, remaining))

    def _wait_for_store(self) -> None:
        """Running calls go on meanwhile; their results are kept until it answers."""
        until = self.clock.monotonic() + pause_after(self.session.outages)
        self.pool.wait(0, until - self.clock.monotonic())
        self._pause(until - self.clock.monotonic())

    def _let_calls_run(self, seconds: float) -> None:
        until = self.clock.monotonic() + seconds
        while (remaining := until - self.clock.monotonic()) > 0 and not self.stop.is_set():
            if held := self.pool.held():
                self.pool.wait(held - 1, remaining)
            else:
                self._pause(remaining)

    def _until_slot(self, reply: StepReply | None) -> float:
        if reply is None or reply.next_slot_at is None:
            return math.inf
        return max(0.001, reply.next_slot_at - reply.now - SLOT_HORIZON_SECONDS / 2)

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
            self.session.look_again()
            return 0.0
        return IDLE_SECONDS  # others hold the rest

    def _reap_when_idle(self, reply: StepReply | None) -> None:
        """Others hold the rest, or have died with it: see which, by their journals first."""
        if (
            reply is None
            or self.session.holds_any
            or reply.rows
            or reply.ledger is None
            or not reply.ledger.in_flight
        ):
            return
        try:
            self.reap()
        except StoreUnavailable as error:
            log.warning("waiting for the store: %s", error)

    def _pause(self, seconds: float) -> None:
        pause(self.clock, self.stop, seconds)

    # ── the end ──

    def _finish(self, report: RunReport, *, in_haste: bool = False) -> RunReport:
        """Running calls end, the rest is withdrawn, one last step reports all of it.

        It waits for a store that does not answer, unless it was asked to end: the journal knows it, too.
        """
        self.session.release_unstarted()
        self.pool.join(self.options.timing.call_limit + self.options.timing.margin)
        give_up = self.clock.monotonic() + self.options.timing.lease / 4
        while True:
            # What a lost step may have begun is fetched (and withdrawn) before the session closes.
            close = not self.session.has_lost_step
            reply = self.session.step(0, close=close, fenced_is_fine=True)
            # Fenced, and told all the same: closed by a step whose answer was lost, or given up.
            if reply is not None and (close or reply.fenced):
                break
            if (in_haste or self.stop.is_set()) and self.clock.monotonic() > give_up:
                raise StoreUnavailable(
                    remedy="What was sent is in this machine's journal; the next start takes it over."
                )
            self.clock.sleep(pause_after(self.session.outages))
        self.session.close_journal()
        if report.ended is Ended.THROTTLED:
            self.caller.throttling.clear()
        took = self.clock.monotonic() - self._began
        ledger = self.session.ledger
        if report.ended is Ended.REFUSED and ledger is not None and ledger.settled:
            report = RunReport(Ended.DONE, ledger)  # the last ones were refused: nobody waits for an answer
        return replace(
            report,
            ledger=ledger,
            call_time=self.caller.call_time + CallTime(seconds=took),
        )

    def _end_abruptly(self) -> None:
        """A signal or something unforeseen: end as cleanly as may be; the journal covers the rest."""
        self.session.suspect_lost_step()  # the step that was interrupted may have begun something
        try:
            self._finish(RunReport(Ended.STOPPED, self.session.ledger), in_haste=True)
        except HomeUnwritable as error:  # most often the one that ended it, which is shown
            log.info("the session could not be closed (%s); its journal stays for the next start", error)
            self.session.abandon_journal()
        except Exception as error:  # noqa: BLE001 (the first error is the one to tell)
            log.warning("the session could not be closed (%s); its journal stays for the next start", error)
            self.session.abandon_journal()

    # ── how much ──

    def _batch_size(self) -> BatchSize:
        options, in_flight = self.options, self.caller.in_flight
        return batch_size(
            CallCapacity(in_flight.allowed, self.session.group_size, in_flight.latency, self.caller.filled),
            rate=options.rate,
            batch=options.batch_size,
            held=self.pool.held(),
            lead=SLOT_LEAD_SECONDS + self.session.round_trip,
            round_trip=self.session.round_trip,
            empty_trip=self.session.empty_trip,
            tolerance=self.caller.tolerance,
            remaining=math.inf if self.deadline is None else self.deadline - self.clock.monotonic(),
        )

    def _want(self) -> int:
        """Nothing once something has ended it, or while a lost step is unexplained."""
        if self.session.has_lost_step or self.stop.is_set() or self.caller.must_end:
            return 0
        return self._batch_size().want
