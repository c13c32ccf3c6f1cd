"""The notification worker: a producer's pending rows become messages, and get their results.

The producer's queue is the truth about what is wanted and how often it was tried; our outbox makes it safe:
a row has one message, which is never accepted twice, whoever picks the row and whatever dies in between.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from mailout.base.clock import Clock
from mailout.base.errors import NotFound, SourceUnavailable
from mailout.base.retries import retried
from mailout.kinds.notifications.job import LOCK_SECONDS, WorkerOptions
from mailout.kinds.notifications.messages import NotificationMessages
from mailout.kinds.notifications.port import NotificationCounts, Producer, ProducerRow, RowResult
from mailout.kinds.notifications.row_lookup import NotificationStore, PickedRow, RowLookup, named_in_logs
from mailout.kinds.notifications.rules import (
    TAKEN_BACK,
    Wait,
    has_next_attempt,
    nack,
    result_of,
    was_taken_back,
)
from mailout.letters.content.notification_templates import NotificationTemplates
from mailout.outbox.delivery.options import Ended, RunReport
from mailout.outbox.delivery.port import Message
from mailout.outbox.delivery.states import WAITING, State

log = logging.getLogger("mailout.notifications")

IN_FLIGHT_PAUSE = 5.0
HELD_UP_PAUSE = 60.0
"""Nothing may be sent now (a limit, a pause, a setting): rows are left alone for so long."""
SEND_SECONDS = 30.0
WRITE_TRIES = 30


@dataclass(slots=True)
class _Round:
    """One batch of rows, on its way."""

    wanted: list[PickedRow] = field(default_factory=list)  # a mail is to leave for them
    results: list[RowResult] = field(default_factory=list)
    delays: dict[int, float] = field(default_factory=dict)


class NotificationWorker:
    """Lock → job → outbox → send → report, a batch at a time."""

    def __init__(
        self,
        *,
        producer: Producer,
        store: NotificationStore,
        templates: NotificationTemplates,
        send: Callable[[float], RunReport],
        clock: Clock,
        options: WorkerOptions,
    ) -> None:
        self._producer = producer
        self._store = store
        self._messages = NotificationMessages(templates, options)
        self._rows = RowLookup(producer, store, self._messages, clock, options.zone)
        self._send = send
        self._clock = clock
        self._options = options
        self.on_a_copy = options.on_a_copy
        self.counts = NotificationCounts()
        self.stopped = False
        self.held_up = False  # the last round was, so the next one should wait
        self._mail_leaves = False  # as far as is known

    def close(self) -> None:
        self._producer.close()

    def run(self, stop: threading.Event | None = None) -> NotificationCounts:
        """Everything that can be picked now, unless somebody asks to stop or something holds mail up."""
        while not (stop and stop.is_set()) and self.round() and not self.stopped and not self.held_up:
            continue
        return self.counts

    def round(self) -> int:
        """One batch; how many rows it had."""
        self.held_up = False
        picked = self._producer.lock(self._options.batch)
        if not picked:
            return 0
        batch = _Round()
        self._judge(batch, picked)
        self._send_wanted(batch)
        self._report(batch)
        return len(picked)

    def _judge(self, batch: _Round, picked: Sequence[ProducerRow]) -> None:
        asked = self._rows.look_up(picked)
        if any(one.message and one.message["state"] == State.SENT_ATTEMPT for one in asked):
            self._take_back([one for one in asked if not isinstance(one.made, tuple)])
            self._send(SEND_SECONDS)  # a sender that begins reads the journals of dead ones: they may know
            asked = self._rows.look_up(picked)
        # Asked after all was read: a row that somebody else ended meanwhile is no longer ours.
        ours = self._producer.still_ours([row.notification_id for row in picked])
        for one in asked:
            if one.row.notification_id in ours:
                self._decide(batch, one)
            else:
                self.counts.lost(one.row.notification_id)

    # ── what each row gets ──

    def _decide(self, batch: _Round, one: PickedRow) -> None:
        message = one.message
        is_begun = message is not None and message["state"] == State.SENT_ATTEMPT
        if is_begun or not all(self._retire(old) for old in one.replaced):
            batch.delays[one.row.notification_id] = IN_FLIGHT_PAUSE
        elif message is None or message["state"] in WAITING or has_next_attempt(one.row, message):
            self._want(batch, one)
        else:
            self._ended(batch, one, message)

    def _retire(self, old: Message) -> bool:
        """It is not sent any more: what is in doubt counts as not sent. False: somebody is sending it."""
        try:
            if old["state"] == State.UNKNOWN:
                self._store.settle(None, State.FAILED, wait=0.0, ids=[old["id"]])
            elif old["state"] in WAITING:
                return self._store.cancel_single_mails([old["id"]], TAKEN_BACK) == 1
        except NotFound:
            return False
        return old["state"] != State.SENT_ATTEMPT

    def _want(self, batch: _Round, one: PickedRow) -> None:
        made, message = one.made, one.message
        if isinstance(made, tuple):
            batch.wanted.append(one)
        elif message is not None and message["state"] in WAITING and not self._retire(message):
            batch.delays[one.row.notification_id] = IN_FLIGHT_PAUSE  # somebody has begun it
        elif isinstance(made, Wait):
            batch.delays[one.row.notification_id] = min(made.seconds, float(LOCK_SECONDS))
        else:
            batch.results.append(nack(one.row, made))

    # ── sending ──

    def _send_wanted(self, batch: _Round) -> None:
        """While it is not known that mail leaves, one message goes first: what is in the outbox is sent by
        whoever can, without the producer being asked again, so nothing is put there only to wait."""
        wanted, later = batch.wanted, list[PickedRow]()
        if wanted and not self._mail_leaves:
            first = min(wanted, key=lambda one: one.requeues).id
            later = [one for one in wanted if one.id != first]
            wanted = [one for one in wanted if one.id == first]
        held = self._deliver(batch, wanted)
        if held is None and later:
            batch.wanted = []
            self._judge(batch, [one.row for one in later])  # again: the first may have taken a while
            later = []
            held = self._deliver(batch, batch.wanted)
        if held is not None:
            waiting, report = held
            self._leave_for_later(batch, [*waiting, *later], report)

    def _put(self, batch: _Round, wanted: Sequence[PickedRow]) -> Sequence[PickedRow]:
        """Those whose message waits in the outbox now."""
        new = [
            self._messages.message(one.id, one.requeues, *one.made)
            for one in wanted
            if one.message is None and isinstance(one.made, tuple)
        ]
        again = [one for one in wanted if one.message and one.message["state"] == State.FAILED]
        if new:
            self._store.accept_single_mails(new)
        try:
            if again:
                self._store.retry_failed(None, ids=[one.id for one in again])
        except NotFound:  # another worker had the same message tried again: the rows are picked once more
            batch.delays |= {one.row.notification_id: IN_FLIGHT_PAUSE for one in again}
        return [one for one in wanted if one.row.notification_id not in batch.delays]

    def _deliver(
        self, batch: _Round, wanted: Sequence[PickedRow]
    ) -> tuple[Sequence[PickedRow], RunReport] | None:
        """Until each message has ended; else those that wait, and what keeps them from being sent."""
        waiting = self._put(batch, wanted)
        until = self._clock.monotonic() + LOCK_SECONDS / 2
        while waiting:
            report = self._send(SEND_SECONDS)
            found = self._rows.read(one.id for one in waiting)
            waiting = [
                one
                for one in waiting
                if (message := found.get(one.id)) is None or not self._ended(batch, one, message)
            ]
            if not waiting:
                break
            held_up = report.ended not in (Ended.DONE, Ended.DEADLINE)
            if held_up or self._clock.monotonic() > until:
                return waiting, report
            self._producer.still_ours([one.row.notification_id for one in waiting])
            self._clock.sleep(0.2)
        if wanted:
            self._mail_leaves, self.counts.problems = True, []
        return None

    def _ended(self, batch: _Round, one: PickedRow, message: Message) -> bool:
        """Whether this batch need not wait for it any more."""
        if was_taken_back(message):  # by a worker that has another row with the same dedupe key
            batch.delays[one.row.notification_id] = IN_FLIGHT_PAUSE
            return True
        given_up_at = message["unknown_at"] if message["error_code"] is None else None
        if given_up_at is not None and 0 <= self._store.now() - given_up_at < self._options.lost_after:
            # A sender that only stood still knows what it sent, and what it never called.
            batch.delays[one.row.notification_id] = IN_FLIGHT_PAUSE
            return True
        result = result_of(one.row, message, self._options.provider)
        if result is not None:
            batch.results.append(result)
        return result is not None

    def _leave_for_later(self, batch: _Round, waiting: Sequence[PickedRow], report: RunReport) -> None:
        """Their rows are asked again before anything is sent: until then the outbox has no mail for them.

        Killed before this, a message waits in the outbox until its row is picked again.
        """
        self._take_back(waiting)
        self.held_up, self._mail_leaves = True, False
        if report.ended is Ended.STOPPED:
            self.stopped = True
        else:
            why = report.limited or report.halt or (report.outcome and report.outcome.code) or report.ended
            said = f"{len(waiting)} notifications wait: {why}"
            if report.outcome is not None and report.outcome.message:
                said = f"{said}. {report.outcome.message}"
            log.warning("%s", said)
            self.counts.problems = [said]
            self._show_that_they_wait()
        pause = 0.0 if self.stopped else HELD_UP_PAUSE
        batch.delays.update({one.row.notification_id: pause for one in waiting})

    def _show_that_they_wait(self) -> None:
        """What keeps single mails from being sent is noted by the run; that nothing is due is no comfort."""
        rehearsal = self._options.rehearsal
        held = self._store.single_mails_waiting(rehearsal=rehearsal).held
        if held is not None:
            self._store.hold_single_mails(replace(held, notifications=True), rehearsal=rehearsal)

    def _take_back(self, asked: Sequence[PickedRow]) -> None:
        """What somebody has begun to send meanwhile stays as it is."""
        if asked:
            self._store.cancel_single_mails(list({one.id for one in asked}), TAKEN_BACK)

    # ── reporting ──

    def _report(self, batch: _Round) -> None:
        written = self._write(batch.results) if batch.results else set()
        if batch.delays:
            self._producer.release(batch.delays)
            self.counts.wait(batch.delays)
        for result in batch.results:
            if result.row.notification_id in written:
                self._count(result)
            else:
                self.counts.lost(result.row.notification_id)

    def _write(self, results: Sequence[RowResult]) -> set[int]:
        """Rows stay locked meanwhile; should it take longer, whoever picks them next reports it."""

        def pause_if_away(error: Exception, tries: int) -> float | None:
            if not isinstance(error, SourceUnavailable) or tries == WRITE_TRIES:
                return None
            if tries == 1:
                log.warning("%s", error)
            return 1.0

        return retried(lambda: self._producer.write(results), pause_if_away, self._clock)

    def _count(self, result: RowResult) -> None:
        if self.counts.count(result, on_a_copy=self.on_a_copy) and result.status == "failed":
            log.warning(
                "notification %d failed: %s %s",
                *(result.row.notification_id, result.error["code"], result.error["message"]),
                extra=named_in_logs(result.row),
            )
