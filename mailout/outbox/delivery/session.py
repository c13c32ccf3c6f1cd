"""A sender's session with the store: one step after another, and all it must remember between them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from mailout.base.clock import Clock
from mailout.base.errors import HomeUnwritable, StoreUnavailable
from mailout.outbox.delivery.call_pool import CallPool, Group
from mailout.outbox.delivery.calls import Caller
from mailout.outbox.delivery.options import Observer, SenderOptions
from mailout.outbox.delivery.port import Journal, Journals, Outbox
from mailout.outbox.delivery.protocol import (
    BULK_SLACK,
    SLACK,
    UNLIMITED_RATE,
    Attempt,
    Claimed,
    Ledger,
    Pace,
    Result,
    Step,
    StepReply,
)
from mailout.outbox.delivery.store_retry import TOLD_EVERY, pause, pause_after

log = logging.getLogger("mailout.sender")

SLOT_LEAD_SECONDS = 0.05
SLOT_HORIZON_SECONDS = 1.0
CURSOR_SECONDS = 30.0
"""The cursor spares the store from walking over what is done; now and then it starts again from 0."""


@dataclass(eq=False, repr=False, kw_only=True)
class Session:
    """What the store believes is in our hands, and how it is told. Given up by the store, it begins again
    under another id."""

    store: Outbox
    transport: str
    journals: Journals
    clock: Clock
    options: SenderOptions
    observers: Sequence[Observer]
    stop: threading.Event
    caller: Caller
    pool: CallPool
    group_size: int
    mailout_id: str | None
    ledger: Ledger | None = field(default=None, init=False)
    outages: int = field(default=0, init=False)  # steps in a row that the store did not answer
    last_good: float = field(default=0.0, init=False)  # when the last answered step was asked
    round_trip: float = field(default=0.0, init=False)  # of a step
    empty_trip: float = field(default=0.0, init=False)  # of a call that asks for nothing

    def __post_init__(self) -> None:
        self._id = ""
        self._journal: Journal | None = None
        self._n = 0
        self._answered = 0  # the last step that the store has taken and answered
        self._cursor = 0
        self._cursor_since = 0.0
        self._offsets: list[float] = []
        self._begun: dict[Attempt, Claimed] = {}  # what the store believes is in our hands
        self._withdraw: list[Attempt] = []
        self._recover = False  # a step was lost: what it began is not known yet

    # ── from its beginning to its end ──

    def open_when_it_answers(self) -> None:
        while True:
            try:
                self._open()
            except StoreUnavailable as error:
                if self.stop.is_set() or isinstance(error, HomeUnwritable):
                    raise
                self._unanswered(error)
                pause(self.clock, self.stop, pause_after(self.outages))
            else:
                return self._back()

    def _open(self) -> None:
        self._id = self.store.open_session(
            self.mailout_id,
            worker=self.options.worker,
            transport=self.transport,
            lease=self.options.timing.lease,
        )
        self._recover = False
        self._n = self._answered = 0
        self._open_journal()
        self._compare_clocks()
        self._cursor, self._cursor_since = 0, self.clock.monotonic()
        self.last_good = self.clock.monotonic()
        self.caller.renew_lease(self.last_good, self.clock.now())

    def _open_journal(self) -> None:
        """Without one nothing is sent, and the session ends."""
        try:
            self._journal = self.journals.open(self._id)
        except HomeUnwritable:
            self._n += 1
            pace = Pace(self.options.pace_scope, self.options.rate)
            try:
                self.store.step(Step(self._id, self._n, self.options.timing.lease, pace, close=True))
            except StoreUnavailable as error:
                log.warning("the session stays open until its lease ends: %s", error)
            raise
        self.caller.journal = self._journal

    def _compare_clocks(self) -> None:
        """Slots are on the store's clock; a step's answer alone, with its commit, would place them late."""
        trips = []
        for _ in range(3):
            asked_at = self.clock.monotonic()
            moment = self.store.now()
            received = self.clock.monotonic()
            self._offsets.append(received - moment)
            trips.append(received - asked_at)
        self.empty_trip = min(trips)

    def _reopen(self) -> None:
        """Fenced: this session was given up. Finish running calls, keep their results, open a new session."""
        log.warning("the session was given up (this process did not run for too long); a new one begins")
        self.release_unstarted()
        self.pool.join(self.options.timing.call_limit + self.options.timing.margin)
        self.release_unstarted()  # what lost its slot meanwhile
        if self._drain_results_into_store():
            self.close_journal()
            self.open_when_it_answers()

    def close_journal(self) -> None:
        """All that it knows is in the store."""
        if self._journal is not None:
            self._journal.close(self._answered)

    def abandon_journal(self) -> None:
        """It knows more than the store: the next sender learns from it."""
        if self._journal is not None:
            self._journal.abandon()

    def release_unstarted(self) -> None:
        self._withdraw.extend(row.attempt for row in self.pool.take_back())

    def _drain_results_into_store(self) -> bool:
        """Results count by epoch, also from a session that was given up; keep trying until they are in.

        False: it was asked to end, and its last step tells them.
        """
        while not self.stop.is_set():
            results, withdrawn = self.caller.peek()
            if not results and not withdrawn and not self._withdraw:
                return True
            if self.step(0, fenced_is_fine=True) is None:
                pause(self.clock, self.stop, pause_after(self.outages))
        return False

    # ── one step ──

    def step(self, want: int, *, close: bool = False, fenced_is_fine: bool = False) -> StepReply | None:
        """One round trip. None: the store does not answer, and nothing of this step may be used."""
        self.pool.look()
        self._withdraw.extend(row.attempt for row in self.pool.take_slotless())
        results, unread = self.caller.peek()
        withdraw = [*self._withdraw, *unread]
        self._cursor = self._cursor_before(withdraw)
        self._n += 1
        throttled = self.caller.throttled.is_set()
        self.caller.throttled.clear()
        asked_at, wall = self.clock.monotonic(), self.clock.now()
        try:
            reply = self.store.step(
                Step(
                    session=self._id,
                    n=self._n,
                    lease=self.options.timing.lease,
                    pace=Pace(
                        scope=self.options.pace_scope,
                        rate=self.options.rate,
                        lead=SLOT_LEAD_SECONDS + self.round_trip,
                        horizon=SLOT_HORIZON_SECONDS,
                        group=self.group_size,
                        throttled=throttled,
                        slack=BULK_SLACK if self.group_size > 1 else SLACK,
                    ),
                    results=results,
                    withdraw=withdraw,
                    want=want,
                    cursor=self._cursor,
                    buckets=self.options.buckets(self._store_time(asked_at)),
                    recover=self._recover,
                    close=close,
                )
            )
        except StoreUnavailable as error:
            self._recover = True
            if throttled:
                self.caller.throttled.set()
            if isinstance(error, HomeUnwritable):
                raise  # a person has to make room: the run ends, and its journal tells the next one
            self._unanswered(error)
            return None
        self._back()
        self._recorded(results, withdraw, reply)
        if reply.fenced:
            if not fenced_is_fine:
                self._reopen()
                return None
            return reply
        self._answered = self._n
        self._good(reply, asked_at, wall)
        return reply

    def _unanswered(self, error: StoreUnavailable) -> None:
        if self.outages % TOLD_EVERY == 0:
            log.warning("waiting for the store: %s", error)
        self.outages += 1

    def _back(self) -> None:
        if self.outages:
            log.warning("the store is back after %d tries", self.outages)
            self.outages = 0

    def _recorded(self, results: Sequence[Result], withdraw: Sequence[Attempt], reply: StepReply) -> None:
        """These are durable now: forget them here, tell the listeners."""
        for id in reply.missing:
            log.error(
                "OUTBOX_NOT_FOUND: message %s was called and is not in the outbox; see dead letters", id
            )
        self.caller.forget(len(results), len(withdraw) - len(self._withdraw))
        self._withdraw.clear()
        for attempt in withdraw:
            self._begun.pop(attempt, None)
        pairs = [(self._begun.pop(r.attempt), r) for r in results if r.attempt in self._begun]
        if reply.ledger is not None:
            self.ledger = reply.ledger
        for observer in self.observers if pairs or reply.ledger else ():
            observer.recorded(pairs, reply.ledger)

    def _good(self, reply: StepReply, asked_at: float, wall: float) -> None:
        """Learn from the answer: the lease, the clocks, and what the lost step had begun."""
        received = self.clock.monotonic()
        self.last_good = asked_at
        self.caller.renew_lease(asked_at, wall)
        trip = received - asked_at
        self.round_trip = trip if not self.round_trip else 0.8 * self.round_trip + 0.2 * trip
        self._offsets = [*self._offsets[-19:], received - reply.now]
        if self._recover:
            self._recover = False
            self._withdraw.extend(a for a in reply.recovered if a not in self._begun)
        for row in reply.rows:
            self._begun[row.attempt] = row
            self._cursor = max(self._cursor, row.seq)
        if received - self._cursor_since > CURSOR_SECONDS:
            self._cursor, self._cursor_since = 0, received

    def _cursor_before(self, withdraw: Sequence[Attempt]) -> int:
        """What is withdrawn is claimed before all that stands behind it."""
        seqs = [self._begun[attempt].seq if attempt in self._begun else 0 for attempt in withdraw]
        return min([self._cursor, *(max(0, seq - 1) for seq in seqs)])

    @property
    def holds_any(self) -> bool:
        """Messages that it has begun and not recorded yet."""
        return bool(self._begun)

    @property
    def has_withdrawals(self) -> bool:
        """The next step gives something back."""
        return bool(self._withdraw)

    @property
    def has_lost_step(self) -> bool:
        """What it may have begun is not known yet."""
        return self._recover

    def suspect_lost_step(self) -> None:
        """Something was interrupted: the next step asks what is begun."""
        self._recover = True

    @property
    def serves_single_mails(self) -> bool:
        return self.mailout_id is None

    def has_work(self) -> bool:
        """Whether a step would have something to do, asked without writing anything."""
        try:
            return self.store.has_single_mails(self._id)
        except StoreUnavailable:
            return True  # the step finds out, and waits

    def look_again(self) -> None:
        """Something is due, and behind the cursor."""
        self._cursor = 0

    def _store_time(self, monotonic: float) -> float:
        return monotonic - min(self._offsets)

    def groups(self, reply: StepReply) -> Sequence[Group]:
        """One call each: what has the same content and sender. Within the time of one slot, each call begins
        when those before it have had theirs."""
        groups = []
        for first in range(0, len(reply.rows), self.group_size):
            rows = reply.rows[first : first + self.group_size]
            slot, before = rows[0].slot, 0
            calls: dict[tuple[str, str | None], list[Claimed]] = {}
            for row in rows:
                calls.setdefault((row.content_hash, row.from_name), []).append(row)
            for call in calls.values():
                start = None if slot is None else slot + min(self._offsets)
                if start is not None and before:
                    start += before * SLACK / (self.options.rate or UNLIMITED_RATE)
                groups.append(Group(call, start))
                before += len(call)
        return groups
