"""One run of a sender: the loop of steps, and everything it must remember between them."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Sequence
from dataclasses import replace

from mailout.delivery.calls import Caller
from mailout.delivery.demand import Demand, Lanework, demand
from mailout.delivery.lanes import Group, Lanes
from mailout.delivery.options import Ended, Observer, RunReport, SenderOptions
from mailout.delivery.pacing import lanes_needed
from mailout.delivery.patience import pause_after
from mailout.delivery.protocol import (
    Attempt,
    Claimed,
    Halt,
    Ledger,
    Pace,
    Result,
    Step,
    StepReply,
)
from mailout.errors import StoreUnavailable
from mailout.ports import Clock, Journal, Journals, Outbox, Transport

log = logging.getLogger("mailout.sender")

LEAD = 0.05
HORIZON = 1.0
CURSOR_SECONDS = 30.0
"""The cursor spares the store from walking over what is done; now and then it starts again from 0."""
IDLE_SECONDS = 0.5


class Run:
    """One run: the loop of steps, with everything it must remember between them."""

    def __init__(
        self,
        *,
        store: Outbox,
        transport: Transport,
        journals: Journals,
        clock: Clock,
        options: SenderOptions,
        observer: Observer | None,
        stop: threading.Event,
        caller: Caller,
        lanes: Lanes,
        group_size: int,
        campaign_id: str | None,
        deadline: float | None,
    ) -> None:
        self._store = store
        self._transport = transport
        self._journals = journals
        self._clock = clock
        self._options = options
        self._observer = observer
        self._stop = stop
        self._caller = caller
        self._lanes = lanes
        self._campaign_id = campaign_id
        self._deadline = deadline
        self._group_size = group_size
        self._session = ""
        self._journal: Journal | None = None
        self._n = 0
        self._cursor = 0
        self._cursor_since = 0.0
        self._last_good = 0.0
        self._begun: dict[Attempt, Claimed] = {}  # what the store believes is in our hands
        self._withdraw: list[Attempt] = []
        self._recover = False
        self._outages = 0
        self._round_trip = 0.0
        self._offsets: list[float] = []
        self._ledger: Ledger | None = None

    # ── the story ──

    def run(self) -> RunReport:
        self._open_when_it_answers()
        try:
            while True:
                reply = self._step(self._want())
                if reply is not None and reply.rows:
                    self._lanes.offer(self._groups(reply))
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
        refused = self._caller.refused
        if refused is not None:
            return RunReport(Ended.REFUSED, self._ledger, outcome=refused)
        if self._caller.quota is not None:
            return RunReport(Ended.LIMITED, self._ledger, limited="quota", outcome=self._caller.quota)
        if self._caller.failures_in_a_row >= self._options.circuit_failures > 0:
            return RunReport(Ended.CIRCUIT, self._ledger, outcome=self._caller.last_failure)
        if self._stop.is_set():
            return RunReport(Ended.STOPPED, self._ledger)
        if reply is None:
            return None  # away: a stretch that ended now would end in waiting, too
        if self._deadline is not None and self._clock.monotonic() >= self._deadline:
            return RunReport(Ended.DEADLINE, self._ledger)
        if reply.halt is not None:
            ended = Ended.STOPPED if reply.halt is Halt.STOP else Ended.HALTED
            return RunReport(ended, self._ledger, halt=reply.halt)
        if reply.limited is not None and not self._begun:
            return RunReport(Ended.LIMITED, self._ledger, limited=reply.limited)
        if reply.ledger is not None and reply.ledger.settled and not self._begun:
            return RunReport(Ended.DONE, reply.ledger)
        return None

    def _wait(self, reply: StepReply | None) -> None:
        """Until there is something to tell the store or to ask of it."""
        patience = self._last_good + self._options.timing.lease / 4 - self._clock.monotonic()
        if self._deadline is not None:
            patience = min(patience, self._deadline - self._clock.monotonic())
        patience = max(0.01, patience)
        if reply is None:
            self._wait_for_store()
        elif self._begun:
            wish = self._demand()
            limit = min(patience, self._until_slot(reply), 1.0)
            if reply.rows:
                self._lanes.wait(wish.low, limit)
            else:
                self._lanes.wait_for_news(limit)
            self._let_lanes_work(min(patience, self._last_good + wish.period - self._clock.monotonic()))
        elif not self._withdraw:
            self._pause(min(patience, self._until_due(reply)))

    def _wait_for_store(self) -> None:
        """Calls in hand go on meanwhile; their results are kept until it is back."""
        until = self._clock.monotonic() + pause_after(self._outages)
        self._lanes.wait(0, until - self._clock.monotonic())
        self._pause(until - self._clock.monotonic())

    def _let_lanes_work(self, seconds: float) -> None:
        until = self._clock.monotonic() + seconds
        while (left := until - self._clock.monotonic()) > 0 and not self._stop.is_set():
            if held := self._lanes.held():
                self._lanes.wait(held - 1, left)
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
        if reply.next_slot_at is not None:
            return self._until_slot(reply)
        if reply.next_due_at is not None and reply.next_due_at > reply.now:
            return reply.next_due_at - reply.now
        if reply.next_due_at is not None:
            self._cursor = 0  # due, and behind the cursor
            return 0.0
        return IDLE_SECONDS  # others hold the rest

    def _reap_when_idle(self, reply: StepReply | None) -> None:
        """Others hold the rest, or have died with it: see which."""
        if reply is None or self._begun or reply.rows or reply.ledger is None or not reply.ledger.in_flight:
            return
        try:
            self._store.reap(self._options.timing.reap_grace)
        except StoreUnavailable as error:
            log.warning("waiting for the store: %s", error)

    def _pause(self, seconds: float) -> None:
        """Sleep, but hear a stop within half a second."""
        until = self._clock.monotonic() + seconds
        while not self._stop.is_set():
            left = until - self._clock.monotonic()
            if left <= 0:
                return
            self._clock.sleep(min(left, 0.5))

    # ── sessions ──

    def _open(self) -> None:
        self._session = self._store.open_session(
            self._campaign_id,
            worker=self._options.worker,
            transport=self._transport.name,
            lease=self._options.timing.lease,
        )
        self._recover = False
        self._journal = self._journals.open(self._session)
        self._caller.journal = self._journal
        self._n = 0
        self._compare_clocks()
        self._cursor, self._cursor_since = 0, self._clock.monotonic()
        self._last_good = self._clock.monotonic()
        self._caller.lease_until = self._last_good + self._options.timing.lease

    def _compare_clocks(self) -> None:
        """Slots are on the store's clock; a step's answer alone, with its commit, would place them late."""
        for _ in range(3):
            moment = self._store.now()
            self._offsets.append(self._clock.monotonic() - moment)

    def _reopen(self) -> None:
        """Fenced: somebody gave us up. End calls in hand, keep their results, begin as a new session."""
        log.warning("the session was given up (this process was away too long); a new one begins")
        self._release_unstarted()
        self._lanes.join(self._options.timing.call_limit + self._options.timing.margin)
        self._drain_results_into_store()
        if self._journal is not None:
            self._journal.close(self._n)
        self._open_when_it_answers()

    def _open_when_it_answers(self) -> None:
        while True:
            try:
                self._open()
            except StoreUnavailable as error:
                if self._stop.is_set():
                    raise
                self._away(error)
                self._pause(pause_after(self._outages))
            else:
                return self._back()

    def _finish(self, report: RunReport, *, in_haste: bool = False) -> RunReport:
        """Calls in hand end, the rest is withdrawn, one last step tells all of it.

        It waits for a store that is away, unless somebody waits for us to end: the journal knows it, too.
        """
        self._release_unstarted()
        self._lanes.join(self._options.timing.call_limit + self._options.timing.margin)
        give_up = self._clock.monotonic() + self._options.timing.lease / 4
        while True:
            # What a lost step may have begun is fetched (and withdrawn) before the session closes.
            close = not self._recover
            if self._step(0, close=close) is not None and close:
                break
            if (in_haste or self._stop.is_set()) and self._clock.monotonic() > give_up:
                raise StoreUnavailable(
                    remedy="What was sent is in this machine's journal; the next start takes it over."
                )
            self._clock.sleep(pause_after(self._outages))
        if self._journal is not None:
            self._journal.close(self._n)
        latency = self._caller.latency
        needed = lanes_needed(self._options.rate, latency, self._group_size)
        return replace(report, ledger=self._ledger, latency=latency, lanes_needed=needed)

    def _end_abruptly(self) -> None:
        """A signal or something unforeseen: end as cleanly as may be; the journal covers the rest."""
        self._recover = True  # the step that was interrupted may have begun something
        try:
            self._finish(RunReport(Ended.STOPPED, self._ledger), in_haste=True)
        except Exception as error:  # noqa: BLE001 (the first error is the one to tell)
            log.warning("the session could not be closed (%s); its journal stays for the next start", error)

    def _release_unstarted(self) -> None:
        for group in self._lanes.take_back():
            self._withdraw.extend(row.attempt for row in group.rows)

    def _drain_results_into_store(self) -> None:
        """Results count by epoch, also from a session that was given up; keep trying until they are in."""
        while True:
            results, withdrawn = self._caller.peek()
            if not results and not withdrawn and not self._withdraw:
                return
            if self._step(0, fenced_is_fine=True) is None:
                self._clock.sleep(pause_after(self._outages))

    # ── one step ──

    def _step(self, want: int, *, close: bool = False, fenced_is_fine: bool = False) -> StepReply | None:
        """One round trip. None: the store is away, and nothing of this step may be used."""
        self._lanes.look()
        results, slipped = self._caller.peek()
        withdraw = [*self._withdraw, *slipped]
        self._n += 1
        throttled = self._caller.throttled.is_set()
        self._caller.throttled.clear()
        asked_at = self._clock.monotonic()
        try:
            reply = self._store.step(
                Step(
                    session=self._session,
                    n=self._n,
                    lease=self._options.timing.lease,
                    pace=Pace(
                        scope=self._options.pace_scope,
                        rate=self._options.rate,
                        lead=LEAD + self._round_trip,
                        horizon=HORIZON,
                        group=self._group_size,
                        throttled=throttled,
                    ),
                    results=results,
                    withdraw=withdraw,
                    want=want,
                    cursor=self._cursor,
                    buckets=self._options.buckets(self._store_time(asked_at)),
                    recover=self._recover,
                    close=close,
                )
            )
        except StoreUnavailable as error:
            self._away(error)
            self._recover = True
            if throttled:
                self._caller.throttled.set()
            return None
        self._back()
        self._recorded(results, withdraw, reply)
        if reply.fenced:
            if not fenced_is_fine:
                self._reopen()
                return None
            return reply
        self._good(reply, asked_at)
        return reply

    def _away(self, error: StoreUnavailable) -> None:
        if self._outages == 0:
            log.warning("waiting for the store: %s", error)
        self._outages += 1

    def _back(self) -> None:
        if self._outages:
            log.warning("the store is back after %d tries", self._outages)
            self._outages = 0

    def _recorded(self, results: Sequence[Result], withdraw: Sequence[Attempt], reply: StepReply) -> None:
        """These are durable now: forget them here, tell whoever watches."""
        self._caller.forget(len(results), len(withdraw) - len(self._withdraw))
        self._withdraw.clear()
        for attempt in withdraw:
            self._begun.pop(attempt, None)
        pairs = [(self._begun.pop(r.attempt), r) for r in results if r.attempt in self._begun]
        if reply.ledger is not None:
            self._ledger = reply.ledger
        if self._observer is not None and (pairs or reply.ledger):
            self._observer.recorded(pairs, reply.ledger)

    def _good(self, reply: StepReply, asked_at: float) -> None:
        """Learn from the answer: the lease, the clocks, and what the lost step had begun."""
        received = self._clock.monotonic()
        self._last_good = asked_at
        self._caller.lease_until = asked_at + self._options.timing.lease
        trip = received - asked_at
        self._round_trip = trip if not self._round_trip else 0.8 * self._round_trip + 0.2 * trip
        self._offsets = [*self._offsets[-19:], received - reply.now]
        if self._recover:
            self._recover = False
            self._withdraw.extend(a for a in reply.recovered if a not in self._begun)
        for row in reply.rows:
            self._begun[row.attempt] = row
            self._cursor = max(self._cursor, row.seq)
        if received - self._cursor_since > CURSOR_SECONDS:
            self._cursor, self._cursor_since = 0, received

    def _store_time(self, monotonic: float) -> float:
        return monotonic - min(self._offsets)

    # ── how much, and when ──

    def _demand(self) -> Demand:
        options = self._options
        return demand(
            Lanework(options.concurrency, self._group_size, self._caller.latency),
            rate=options.rate,
            batch=options.batch_size,
            held=self._lanes.held(),
            lead=LEAD + self._round_trip,
            round_trip=self._round_trip,
            tolerance=self._caller.tolerance,
            left=math.inf if self._deadline is None else self._deadline - self._clock.monotonic(),
        )

    def _want(self) -> int:
        """Nothing once something has ended it, or while a lost step is unexplained."""
        if self._recover or self._stop.is_set() or self._caller.must_end:
            return 0
        return self._demand().want

    def _groups(self, reply: StepReply) -> Sequence[Group]:
        offset = min(self._offsets)
        groups = []
        for start in range(0, len(reply.rows), self._group_size):
            rows = reply.rows[start : start + self._group_size]
            slot = rows[0].slot
            groups.append(Group(rows, None if slot is None else slot + offset))
        return groups
