"""The notification worker: a producer's pending rows become messages, and get their results.

The producer's queue is the truth about what is wanted and how often it was tried; our outbox makes it safe:
a row has one message, which is never accepted twice, whoever picks the row and whatever dies in between.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mailout.base.clock import Clock
from mailout.base.errors import SourceUnavailable
from mailout.base.retries import retried
from mailout.kinds.notifications.job import LOCK_SECONDS
from mailout.kinds.notifications.messages import NotificationMessages, WorkerOptions
from mailout.kinds.notifications.port import (
    KnownMessage,
    KnownNotification,
    NewNotification,
    NotificationCounts,
    Notifications,
    Producer,
    ProducerRow,
    Reported,
    RowResult,
)
from mailout.kinds.notifications.rules import Wait, looks_requeued, nack, result_of, verdict, was_tried
from mailout.letters.content.model import Content
from mailout.letters.content.notification_templates import NotificationTemplates
from mailout.letters.content.port import Contents
from mailout.outbox.delivery.options import Ended, RunReport
from mailout.outbox.delivery.states import WAITING, State

log = logging.getLogger("mailout.notifications")

IN_FLIGHT_PAUSE = 5.0
HELD_UP_PAUSE = 60.0
"""Nothing may be sent now (a limit, a pause, a setting): rows are left alone for so long."""
SEND_SECONDS = 30.0
WRITE_TRIES = 30


class NotificationStore(Notifications, Contents, Protocol):
    """What the worker reads and writes on our side."""


@dataclass(slots=True)
class _Round:
    """One batch of rows, on its way."""

    rows: dict[str, ProducerRow]  # by key
    known: Mapping[str, KnownNotification]
    results: list[tuple[str, RowResult, KnownMessage | None]] = field(default_factory=list)
    delays: dict[int, float] = field(default_factory=dict)
    new: list[NewNotification] = field(default_factory=list)
    contents: dict[str, Content] = field(default_factory=dict)
    notes: list[Reported] = field(default_factory=list)


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
        self._send = send
        self._clock = clock
        self._options = options
        self._contents_put: set[str] = set()
        self.counts = NotificationCounts()
        self.stopped = False

    @property
    def on_a_copy(self) -> bool:
        return self._options.on_a_copy

    def close(self) -> None:
        self._producer.close()

    def run(self, stop: threading.Event | None = None) -> NotificationCounts:
        """Everything that can be picked now, unless somebody asks to stop."""
        while not self.stopped and not (stop and stop.is_set()) and self.round():
            continue
        return self.counts

    def round(self) -> int:
        """One batch; how many rows it had."""
        picked = self._producer.lock(self._options.batch)
        if not picked:
            return 0
        keys = {self._messages.key(row): row for row in picked}
        known = self._store.recall_notifications(list(keys), requeue=not self._options.on_a_copy)
        if any(one.message and one.message.state is State.SENT_ATTEMPT for one in known.values()):
            self._send(SEND_SECONDS)  # a sender that begins reads the journals of dead ones: they may know
            known = self._store.recall_notifications(list(keys), requeue=False)
        # Asked after our notes were read: a row that somebody else ended meanwhile is no longer ours.
        ours = self._producer.still_ours([row.notification_id for row in picked])
        batch = _Round({key: row for key, row in keys.items() if row.notification_id in ours}, known)
        for key, row in batch.rows.items():
            self._decide(batch, key, row)
        self._put(batch)
        self._deliver(batch)
        self._report(batch)
        return len(picked)

    # ── what each row asks for ──

    def _decide(self, batch: _Round, key: str, row: ProducerRow) -> None:
        known = batch.known.get(key, KnownNotification())
        if self._options.on_a_copy:
            known = KnownNotification(known.requeues)  # its content decides whether it was rehearsed before
        message = known.message
        if message is not None and message.state not in WAITING:
            if message.state is State.SENT_ATTEMPT:
                batch.delays[row.notification_id] = IN_FLIGHT_PAUSE
                return
            reported = known.told_epoch == message.epoch or was_tried(row, message)
            if message.may_be_tried_again and reported:
                if known.told_epoch != message.epoch:
                    batch.notes.append(Reported(key, message.epoch, ended=False))
            elif looks_requeued(row) and self._producer.was_reported(row, message.id):
                known = self._requeued(key, message)
                message = None
            else:
                self._ended(batch, key, row, message)
                return
        self._want(batch, key, row, known.requeues, message)

    def _requeued(self, key: str, message: KnownMessage) -> KnownNotification:
        """Its end was reported, and we died before we could note that."""
        self._store.note_reported([Reported(key, message.epoch, ended=True)])
        return self._store.recall_notifications([key], requeue=True)[key]

    def _want(
        self, batch: _Round, key: str, row: ProducerRow, requeues: int, message: KnownMessage | None
    ) -> None:
        why = verdict(row, now=self._clock.now(), zone=self._options.zone)
        made = why or self._messages.make(row)
        if isinstance(made, tuple):
            job, content = made
            batch.contents[content.hash] = content
            batch.new.append(self._messages.message(key, requeues, job, content))
            return
        if message is not None and message.state in WAITING:
            after = self._store.take_back_notifications({key: message.id}).get(message.id)
            if after is not State.SUPPRESSED:  # somebody has begun it
                batch.delays[row.notification_id] = IN_FLIGHT_PAUSE
                return
        if isinstance(made, Wait):
            batch.delays[row.notification_id] = min(made.seconds, float(LOCK_SECONDS))
        else:
            batch.results.append((key, nack(row, made), message))

    # ── sending ──

    def _put(self, batch: _Round) -> None:
        if batch.notes:
            self._store.note_reported(batch.notes)
        for hash, content in batch.contents.items():
            if hash not in self._contents_put:
                self._store.put_content(content)
                self._contents_put.add(hash)
        if batch.new:
            self._store.put_notifications(batch.new)

    def _deliver(self, batch: _Round) -> None:
        """Until each message of ours has ended, or something keeps them from being sent."""
        waiting = {one.key for one in batch.new}
        until = self._clock.monotonic() + LOCK_SECONDS / 2
        while waiting:
            report = self._send(SEND_SECONDS)
            known = self._store.recall_notifications(sorted(waiting), requeue=False)
            waiting = {
                key
                for key in waiting
                if (message := known[key].message) is None
                or not self._ended(batch, key, batch.rows[key], message)
            }
            if not waiting:
                return
            held_up = report.ended not in (Ended.DONE, Ended.DEADLINE)
            if held_up or self._clock.monotonic() > until:
                self._leave_for_later(batch, waiting, report)
                return
            self._producer.still_ours([batch.rows[key].notification_id for key in waiting])
            self._clock.sleep(0.2)

    def _ended(self, batch: _Round, key: str, row: ProducerRow, message: KnownMessage) -> bool:
        """Whether this batch need not wait for it any more."""
        if message.given_up_for is not None and 0 <= message.given_up_for < self._options.lost_after:
            # A sender that only stood still knows what it sent, and what it never called.
            batch.delays[row.notification_id] = IN_FLIGHT_PAUSE
            return True
        result = result_of(row, message, self._options.provider)
        if result is not None:
            batch.results.append((key, result, message))
        return result is not None

    def _leave_for_later(self, batch: _Round, waiting: set[str], report: RunReport) -> None:
        if report.ended is Ended.STOPPED:
            self.stopped = True
        else:
            why = report.limited or report.halt or (report.outcome and report.outcome.code) or report.ended
            said = f"{len(waiting)} notifications wait: {why}"
            if report.outcome is not None and report.outcome.message:
                said = f"{said}. {report.outcome.message}"
            log.warning("%s", said)
            self.counts.problems.append(said)
        pause = 0.0 if self.stopped else HELD_UP_PAUSE
        batch.delays.update({batch.rows[key].notification_id: pause for key in waiting})

    # ── reporting ──

    def _report(self, batch: _Round) -> None:
        results = [result for _, result, _ in batch.results]
        written = self._write(results) if results else set()
        if batch.delays:
            self._producer.release(batch.delays)
            self.counts.waiting += len(batch.delays)
        reported = [
            Reported(key, message.epoch, ended=result.status != "pending")
            for key, result, message in batch.results
            if message is not None and result.row.notification_id in written
        ]
        if reported:
            self._store.note_reported(reported)
        self._count([result for result in results if result.row.notification_id in written])

    def _write(self, results: Sequence[RowResult]) -> set[int]:
        """Rows stay locked meanwhile; should it take longer, whoever picks them next reports it."""

        def pause_if_away(error: Exception, tries: int) -> float | None:
            if not isinstance(error, SourceUnavailable) or tries == WRITE_TRIES:
                return None
            if tries == 1:
                log.warning("%s", error)
            return 1.0

        return retried(lambda: self._producer.write(results), pause_if_away, self._clock)

    def _count(self, results: Sequence[RowResult]) -> None:
        for result in results:
            match result.status:
                case "sent":
                    self.counts.sent += 1
                case "skipped":
                    self.counts.skipped += 1
                case "failed":
                    self.counts.failed += 1
                    log.warning(
                        "notification %d failed: %s %s",
                        result.row.notification_id,
                        result.error["code"],
                        result.error["message"],
                        extra=_named_in_logs(result.row),
                    )
                case _:
                    self.counts.retried += 1


def _named_in_logs(row: ProducerRow) -> Mapping[str, object]:
    event = row.event or {}
    return {
        "traceId": event.get("trace_id"),
        "subscriptionId": row.notification.get("subscription_id"),
        "openEventId": row.notification.get("open_event_id"),
        "term": event.get("term_id"),
        "campus": event.get("campus_code"),
    }
