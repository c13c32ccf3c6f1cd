"""One run of the queue: what is due is sent, in time slices; after each it is asked whose turn it is.

So an urgent mailout waits for a time slice of a long one, never for its end, and companies alternate. A run
that finds nothing due joins what another one is sending, if the pace leaves room: that is how a second
machine gets its share. The store is the brake for both.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from mailout.app.sending import Sending
from mailout.base.errors import (
    HomeUnwritable,
    MailoutError,
    NotFound,
    StoreDamaged,
    StoreError,
    StoreMismatch,
    StoreRolledBack,
    StoreUnavailable,
    TransitionRefused,
)
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.protocol import Timing
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.deferrals import defer
from mailout.outbox.queue.limits import Defer, after_errors
from mailout.outbox.queue.mailout import DeferReason, Mailout, Status
from mailout.outbox.queue.turns import next_turn
from mailout.outbox.queue.unattended import WATCH_SECONDS, was_tested, would_help

log = logging.getLogger("mailout.queue")

ENDS_THE_RUN = (HomeUnwritable, StoreDamaged, StoreMismatch, StoreRolledBack)
"""No other mailout would fare better. Nor while the store is away: that is asked when it happens."""


class MailoutSteps(Protocol):
    """How one mailout is sent: `flows.delivery.Delivery` does it in Prefect's tasks."""

    def begin(self, id: str) -> bool:
        """Freeze it and start to send it; False: it has to wait."""

    def send(self, id: str, still_its_turn: Callable[[], bool]) -> bool:
        """Time slices for as long as it is its turn; True while there is more to do."""

    def end(self, id: str) -> None:
        """It is done, or waits: report it."""


@dataclass
class QueueRun:
    """Who has had a turn in this run, and who is in the middle of one.

    `look` writes into the queue what was asked for since; between turns too, for a run may last for hours.
    """

    sending: Sending
    steps: MailoutSteps
    look: Callable[[], object] = lambda: None
    in_hand: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    _joined: set[str] = field(default_factory=set)  # others are sending them
    _unforeseen: list[Exception] = field(default_factory=list)
    _tried_to_freeze: set[str] = field(default_factory=set)

    def run(self) -> Sequence[str]:
        """The mailouts that had their turn, as they ended."""
        self.sending.reap()
        self._look()
        while (mailout := self._next() or self._next_to_join()) is not None:
            self._take_turn(mailout.id)
            self._look()
        if self._unforeseen:
            raise self._unforeseen[0]
        return self.ended

    @property
    def _timing(self) -> Timing:
        return Timing.of(self.sending.settings.lock_seconds)

    def _look(self) -> None:
        """Write down what was asked for; freeze what waits: while a person can still take it back, they see
        to how many it would go."""
        store = self.sending.store
        if queue_rows.all_paused(store):
            return
        self.look()
        now = store.now()
        for mailout in queue_rows.mailouts(store, statuses=[Status.PENDING]):
            if was_tested(store, mailout):
                store.resume(mailout.id)  # when it starts, it is checked again
            planned = mailout.scheduled_at is not None and mailout.scheduled_at > now
            is_due = planned and mailout.frozen_at is None and mailout.content_hash is not None
            if is_due and mailout.id not in self._tried_to_freeze:  # else the next run does
                self._tried_to_freeze.add(mailout.id)
                with self._one_of_many(mailout.id):
                    self.sending.freeze(mailout.id)

    def _next(self) -> Mailout | None:
        store = self.sending.store
        waiting = [store.mailout(id) for id in self.in_hand]
        if not queue_rows.all_paused(store):
            waiting += [
                mailout
                for mailout in queue_rows.due_mailouts(store, self._timing.lease)
                if mailout.id not in self.ended and mailout.id not in self.in_hand and self._ours(mailout)
            ]
        return next_turn(waiting, queue_rows.last_turns(store))

    def _next_to_join(self) -> Mailout | None:
        """Of those that others are sending, slower than it could be: the one whose turn it would be."""
        store = self.sending.store
        sending = queue_rows.mailouts(store, statuses=[Status.PROCESSING])
        others = [one for one in sending if one.id not in self.ended and self._ours(one)]
        if not others or queue_rows.all_paused(store):
            return None
        speed, rate = self._speed(), self.sending.rate()
        slow = [one for one in others if would_help(speed, rate, one.ledger.pending)]
        mailout = next_turn(slow, queue_rows.last_turns(store))
        if mailout is not None:
            log.info("%s is being sent, at %.1f a second: this run joins", mailout.id, speed)
            self._joined.add(mailout.id)
        return mailout

    def _speed(self) -> float:
        """Attempts that begin in a second, in all runs together: as seen in the next few."""
        store = self.sending.store
        start = store.now()
        before = self._begun(start)
        self.sending.clock.sleep(WATCH_SECONDS)
        return max(0, self._begun(start) - before) / max(WATCH_SECONDS, store.now() - start)

    def _begun(self, since: float) -> int:
        begun = outbox_rows.begun_since(self.sending.store, since, rehearsal=self.sending.rehearses)
        return sum(n for _, n in begun)

    def _ours(self, mailout: Mailout) -> bool:
        """A rehearsal waits for the folder, mail to people for a transport that reaches them."""
        return mailout.is_rehearsal == self.sending.rehearses

    def _take_turn(self, id: str) -> None:
        if not self._go_on(id):
            self.in_hand.remove(id)
            self.ended.append(id)
            with self._one_of_many(id):
                self.steps.end(id)

    @contextmanager
    def _one_of_many(self, id: str) -> Iterator[None]:
        """What goes wrong with one mailout is no reason for the others to wait: it is reported after them."""
        try:
            yield
        except ENDS_THE_RUN:
            raise
        except Exception as error:
            if isinstance(error, StoreUnavailable):
                self.sending.store.now()  # raises if it is away for all of them
            log.exception("%s", id)
            self._unforeseen.append(error)

    def _go_on(self, id: str) -> bool:
        """One turn: a time slice, or several if nobody else waits."""
        with self._one_of_many(id):
            try:
                return self._send(id)
            except (*ENDS_THE_RUN, TransitionRefused, NotFound):
                raise
            except MailoutError as error:
                if isinstance(error, StoreError) and id in self._joined:
                    raise  # whoever sends it may fare well
                self._hold(id, error)
            except Exception:
                self.sending.store.release(id)
                raise
        return False

    def _hold(self, id: str, error: MailoutError) -> None:
        store = self.sending.store
        if isinstance(error, StoreUnavailable):
            log.warning("%s is tried again later: %s", id, error)
            held = after_errors(store.now(), store.mailout(id).pauses_in_a_row, str(error))
        else:
            log.warning("%s waits for a person: %s", id, error)
            held = Defer(DeferReason.CONFIGURATION_ERROR, None, str(error))
        defer(store, id, held)

    def _send(self, id: str) -> bool:
        if id not in self.in_hand:
            self.in_hand.append(id)
            if not self.steps.begin(id):
                return False
        return self.steps.send(id, lambda: self._still_its_turn(id))

    def _still_its_turn(self, id: str) -> bool:
        """Asked after each time slice; what was asked for meanwhile is looked at first."""
        self._look()
        following = self._next()
        return following is not None and following.id == id
