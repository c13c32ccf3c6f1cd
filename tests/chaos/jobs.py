"""What a process does until somebody kills it: everything from the order to the report.

A process is forked from one that has imported everything: it begins within some 30 ms, so that a thousand can
be killed within minutes. Doing a job again is what the same command, or
the next run of the queue, would do.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from gateway.app import create_app
from gateway.server import server_for
from mailout.adapters.journals.files import FileJournals
from mailout.adapters.supabase import SupabaseStore
from mailout.app import notification_wiring, wiring
from mailout.app.engine import Engine
from mailout.base.clock import Clock, SystemClock
from mailout.base.settings import load_settings
from mailout.insight.metrics.counted import counted
from mailout.kinds.mailouts.requests import answer
from mailout.kinds.single_mails.single_mails import MailRequest, SingleMailIntake
from mailout.letters.content.from_settings import footer_of
from mailout.outbox.feedback.ingest import ingest
from mailout.outbox.queue import queue_rows
from mailout.readers import web_archive
from mailout.store import Store
from tests.chaos.forks import FORKS
from tests.contract.articles import order
from tests.contract.postgres import PostgresRpc

MODES = ("folder", "single", "bulk", "single mails", "articles", "notifications")
MAILOUTS = ("folder", "single", "bulk", "articles")
"""Those that have a row in the queue, and so a ledger."""
COMPANY = "default"
HAND_IN = 50


@dataclass(frozen=True)
class Job:
    """All that a process knows: it can be sent to one."""

    home: Path
    mode: str
    address: str  # of the store: sqlite:PATH or supabase:ADDRESS
    people: int
    env: Mapping[str, str] = field(default_factory=dict)
    ref: str = ""  # what is sent; empty: the letter in its home
    boot: str = ""  # which start of the machine this is; empty: the real one
    slow: float = 0.0  # seconds by which each call of the store is late, half of them after its commit
    jumps: Sequence[float] = ()  # where the machine's clock jumps to, one after the other

    @property
    def emails(self) -> list[str]:
        return [f"p{number:04}@example.org" for number in range(self.people)]


class JumpingClock(SystemClock):
    """Its wall clock jumps a few times a second, to and fro; what is measured in seconds goes on."""

    def __init__(self, jumps: Sequence[float]) -> None:
        self._jumps, self._began = jumps, time.monotonic()

    def now(self) -> float:
        passed = int((time.monotonic() - self._began) / 0.25)
        return super().now() + self._jumps[passed % len(self._jumps)]


class SlowRpc(PostgresRpc):
    """Late before and after: an answer that is on its way while the database has committed."""

    late = 0.0

    def __call__(self, name: str, params: Mapping[str, Any]) -> Any:
        time.sleep(self.late / 2)
        try:
            return super().__call__(name, params)
        finally:
            time.sleep(self.late / 2)


def open_store(job: Job, clock: Clock) -> Store:
    kind, _, where = job.address.partition(":")
    if kind == "sqlite":
        return wiring.open_store(load_settings(env=dict(job.env)), clock)
    rpc = SlowRpc(where, clock if job.jumps else None)
    rpc.late = job.slow
    return counted(SupabaseStore.over(rpc), clock)


def open_engine(job: Job) -> Engine:
    os.environ.update(job.env)  # boto3 looks for its keys there
    clock = JumpingClock(job.jumps) if job.jumps else SystemClock()
    journals = FileJournals(job.home / "journal" / "all", job.boot or None)
    return wiring.build(
        load_settings(env=dict(job.env)), clock, store=open_store(job, clock), journals=journals
    )


# ── what can be done ──


def send(job: Job) -> None:
    """From the order to the report; asked to end, it ends in order."""
    engine = open_engine(job)

    def asked_to_end(number: int, frame: object) -> None:
        if not engine.sending.stop():
            sys.exit(0)

    signal.signal(signal.SIGTERM, asked_to_end)
    SENDING[job.mode](engine, job)
    engine.store.close()


def _mailout(engine: Engine, job: Job) -> None:
    try:
        engine.deliver(engine.intake.enqueue(job.ref or str(job.home / "letter.md")).id)
    finally:
        engine.pages.update_due()  # as the next run of the queue does, also of one that is over


def _article(engine: Engine, job: Job) -> None:
    batch = engine.intake.articles.enqueue(order())
    if batch is not None:
        engine.deliver(batch.id)


def _single_mails(engine: Engine, job: Job) -> None:
    """Handed in again under the same keys by whoever got no answer."""
    intake = SingleMailIntake(lambda: footer_of(engine.settings), is_rehearsal=engine.rehearses)
    mails = [
        intake.prepare(
            MailRequest(to=email, subject="Your receipt", html="<p>Thank you.</p>"),
            company=COMPANY,
            request_id=f"r-{email}",
            key=email,
        )
        for email in job.emails
    ]
    for start in range(0, len(mails), HAND_IN):
        engine.store.accept_single_mails(mails[start : start + HAND_IN])
    send_single_mails(engine)


def send_single_mails(engine: Engine) -> None:
    engine.sending.send_single_mails(60.0, until_idle=True)


def _notifications(engine: Engine, job: Job) -> None:
    worker = notification_wiring.notification_worker(engine, job.home / "producer.db", in_place=True)
    worker.run()
    worker.close()


SENDING: Mapping[str, Callable[[Engine, Job], None]] = {
    "folder": _mailout,
    "single": _mailout,
    "bulk": _mailout,
    "articles": _article,
    "single mails": _single_mails,
    "notifications": _notifications,
}


def send_what_was_asked_for(job: Job) -> None:
    """As a run of the queue does: writes welcome letters and what was asked for, sends all that waits."""
    engine = open_engine(job)
    engine.welcomes.write()
    for request in queue_rows.asked(engine.store, waiting=0.0):
        answer(engine.intake, request)
    for mailout in queue_rows.mailouts(engine.store):
        engine.deliver(mailout.id)
    send_single_mails(engine)
    engine.pages.update_due()
    engine.store.close()


def attend(job: Job) -> None:
    """Confirmations and welcome letters as they come, until somebody ends it."""
    engine = open_engine(job)
    while True:
        engine.welcomes.write()
        send_single_mails(engine)
        time.sleep(0.02)


def change_its_mind(job: Job, subject: str) -> None:
    """Somebody who publishes this letter and takes it back, again and again, from its first day on."""
    engine = open_engine(job)
    while True:
        for mailout in queue_rows.mailouts(engine.store):
            if mailout.subject == subject and mailout.content_hash is not None:
                (web_archive.unpublish if mailout.public else web_archive.publish)(engine.store, mailout.id)
        time.sleep(0.05)


def serve(job: Job, port: int) -> None:
    """The gateway."""
    engine = open_engine(job)
    listening = socket.create_server(("127.0.0.1", port))
    app = create_app(
        engine.settings,
        engine.store,
        engine.queue_forecast,
        certificates=wiring.sns_certificates(engine.settings),
        confirm=lambda topic, token: None,
    )
    server_for(app, trusted_proxies=engine.settings.trusted_proxies).run(sockets=[listening])


def apply_events(job: Job) -> None:
    """What has come back, in small parts."""
    engine = open_engine(job)
    ingest(engine.store, "any", batch=7)
    engine.store.close()


# ── processes ──


def start(what: Callable[..., None], job: Job, *more: object) -> BaseProcess:
    process = FORKS.Process(target=_run, args=(what, job, *more), daemon=True)
    process.start()
    return process


def _run(what: Callable[..., None], job: Job, *more: object) -> None:
    os.setsid()
    log = os.open(job.home.parent / f"{job.home.name}.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    what(job, *more)
