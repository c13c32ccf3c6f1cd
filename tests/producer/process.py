"""A worker in a process of its own, to be killed."""

from __future__ import annotations

import os
from pathlib import Path
from zoneinfo import ZoneInfo

from mailout.adapters.folder import FolderTransport
from mailout.adapters.journals.files import FileJournals
from mailout.adapters.producer.queue import ProducerSqlite
from mailout.clock import SystemClock
from mailout.content.footer import Footer
from mailout.content.notification_templates import NotificationTemplates
from mailout.delivery.compose import SingleComposer
from mailout.delivery.options import RunReport, SenderOptions
from mailout.delivery.protocol import Timing
from mailout.delivery.sender import Sender
from mailout.intake.notification_job import JobOptions
from mailout.intake.notification_messages import WorkerOptions
from mailout.intake.notifications import NotificationWorker
from tests.contract.stores import open_address


def work(address: str, db: Path, home: Path, rate: float) -> None:
    clock, store = SystemClock(), open_address(address)
    transport = FolderTransport(home / "outbox", clock)
    journals = FileJournals(home / "journal")
    options = SenderOptions(
        worker=f"here-{os.getpid()}",
        rate=rate,
        timing=Timing.of(4),
        pace_scope="folder",
    )

    def send(seconds: float) -> RunReport:
        composer = SingleComposer(
            store.content,
            footer=lambda: Footer("", "", ""),
            tokens=None,
            from_email="a@example.org",
            from_name="",
            reply_to=None,
        )
        sender = Sender(store, transport, composer, journals, clock, options)
        return sender.run(None, deadline=clock.monotonic() + seconds, until_idle=True)

    NotificationWorker(
        producer=ProducerSqlite(db, worker=f"here-{os.getpid()}", clock=clock, busy_seconds=30),
        store=store,
        templates=NotificationTemplates(home / "templates", ZoneInfo("UTC"), ""),
        send=send,
        clock=clock,
        options=WorkerOptions(
            source="test",
            provider="folder",
            zone=ZoneInfo("UTC"),
            job=JobOptions("https://app.example.org", "en-US"),
            batch=20,
            rehearsal=True,
        ),
    ).run()
