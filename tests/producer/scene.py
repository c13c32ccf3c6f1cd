"""A worker over a producer's database and a store of ours, on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from mailout.adapters.producer.queue import ProducerSqlite
from mailout.kinds.notifications.job import WorkerOptions
from mailout.kinds.notifications.notifications import NotificationWorker
from mailout.kinds.notifications.port import NotificationCounts
from mailout.letters.content import content_rows
from mailout.letters.content.footer import Footer
from mailout.letters.content.notification_templates import NotificationTemplates
from mailout.outbox.delivery.compose import SingleComposer
from mailout.outbox.delivery.options import RunReport, SenderOptions
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Claimed, Outcome, OutcomeKind, Timing
from mailout.outbox.delivery.sender import Sender
from mailout.store import Store
from tests.clocks import FakeClock
from tests.contract.stores import StoreFactory
from tests.producer.database import ProducerDatabase
from tests.unit.outbox.delivery.sending import BUCKETS, ListTransport, MemoryJournals

TRANSIENT = Outcome(
    OutcomeKind.TRANSIENT, code="SES_SERVICE_UNAVAILABLE", category="TRANSIENT_ERROR", message="try later"
)
UNKNOWN = Outcome(OutcomeKind.UNKNOWN, code="SES_TIMEOUT", category="TIMEOUT_ERROR", message="no answer")
REFUSED = Outcome(
    OutcomeKind.PERMANENT, code="SES_MESSAGE_REJECTED", category="PERMANENT_ERROR", message="refused"
)


class Scene:
    def __init__(self, factory: StoreFactory, folder: Path) -> None:
        self.clock = FakeClock()
        self.store: Store = factory.make(self.clock)
        self.producer = ProducerDatabase(folder / "producer.db")
        self.mails: list[Mail] = []
        self.transport = ListTransport(self.clock)
        self.journals = MemoryJournals()
        self.options = WorkerOptions(
            source="course-watch",
            provider="ses",
            zone=ZoneInfo("UTC"),
            base_url="https://app.example.org/",
            locale="en-US",
        )
        self.templates = folder / "templates"
        self.zone = ZoneInfo("UTC")  # that mails say times in
        self._opened: list[NotificationWorker] = []

    def close(self) -> None:
        for worker in self._opened:
            worker.close()

    def answer(self, outcome: Outcome | Callable[[Mail, int], Outcome | None] | None) -> None:
        self.transport.answer = outcome if callable(outcome) else lambda mail, nth: outcome

    @property
    def accepted(self) -> dict[str, int]:
        return dict(self.transport.accepted)

    def send(self, seconds: float) -> RunReport:
        composer = SingleComposer(
            partial(content_rows.content, self.store),
            footer=lambda: Footer("", "", ""),
            tokens=None,
            from_email="seats@example.org",
            from_name="Seats",
            reply_to=None,
            transactional_from_email="notices@example.org",
        )

        def compose(row: Claimed) -> Mail:
            self.mails.append(mail := composer(row))
            return mail

        options = SenderOptions(
            worker="here-1",
            rate=0,
            timing=Timing.of(120),
            inline=True,
            buckets=lambda _: BUCKETS,
        )
        sender = Sender(self.store, self.transport, compose, self.journals, self.clock, options)
        return sender.run(None, deadline=self.clock.monotonic() + seconds, until_idle=True)

    def worker(self, name: str = "here-1", **changes: Any) -> NotificationWorker:
        send = changes.pop("send", self.send)
        update = changes.pop("update_subscriptions", True)
        email_only = changes.pop("email_only", False)
        producer = changes.pop("producer", ProducerSqlite)
        worker = NotificationWorker(
            producer=producer(
                self.producer.path,
                worker=name,
                clock=self.clock,
                update_subscriptions=update,
                email_only=email_only,
                busy_seconds=0.01,
            ),
            store=self.store,
            templates=NotificationTemplates(self.templates, self.zone, "Course Watch"),
            send=send,
            clock=self.clock,
            options=replace(self.options, **changes),
        )
        self._opened.append(worker)
        return worker

    def run(self, **changes: Any) -> NotificationCounts:
        """Everything that can be picked now."""
        return self.worker(**changes).run()

    def requeue(self, id: int) -> None:
        """As an operator does it."""
        with closing(ProducerSqlite(self.producer.path, worker="operator", clock=self.clock)) as producer:
            producer.requeue(id)

    def wait(self, seconds: float) -> None:
        self.clock.sleep(seconds)
