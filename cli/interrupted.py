"""Interrupted mailouts: which they are, and when each continues."""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Iterator

from cli.processes.prefect_api import UP_LOCK
from flows.orphans import is_up
from mailout.app.engine import Engine
from mailout.base.time_format import spoken
from mailout.insight.reporting.phrases import ALL_PAUSED, count, titled
from mailout.letters.content.port import Kind
from mailout.letters.content.refs import names_a_file
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import Mailout, Status
from mailout.store import Store

WORKER_START_SECONDS = 60.0
QUEUE_RUN_SECONDS = 60.0
"""Between two runs of the queue (see prefect.yaml)."""


def interrupted_mailouts(store: Store, machine: str, lock_seconds: float) -> Iterator[str]:
    """A line for each mailout whose sender died."""
    now = store.now()
    found = [
        mailout
        for mailout in queue_rows.mailouts(store, statuses=(Status.PROCESSING,))
        if not _lease_lasts(mailout, lock_seconds, now) or _died_here(mailout.locked_by or "", machine)
    ]
    for mailout in found:
        ledger = mailout.ledger
        said = (
            f"Found “{titled(mailout)}”, interrupted when {ledger.sent:,} of {ledger.recipients:,} were sent"
        )
        if ledger.in_flight:
            said += f" and {count(ledger.in_flight, 'message')} on the way"
        wait = max(WORKER_START_SECONDS, _lease_lasts(mailout, lock_seconds, now)) + QUEUE_RUN_SECONDS
        yield f"{said}. It goes on by itself, within {math.ceil(wait / 60)} minutes."
    if found and queue_rows.all_paused(store):
        yield ALL_PAUSED


def interruption(engine: Engine, mailout: Mailout) -> str | None:
    """That nobody sends a mailout which was begun, and how it goes on, as `It …` says it. None: somebody
    does, or it waits for something else."""
    lock_seconds, up_runs = engine.settings.lock_seconds, is_up(engine.settings.mailout_home / UP_LOCK)
    if mailout.status is Status.PENDING:  # stopped in order, or a person lets it go on
        if up_runs or mailout.started_at is None or mailout.defer_reason is not None:
            return None
        return f"waits for its turn, but nothing is running here; {goes_on(engine, mailout)}"
    now = engine.store.now()
    by = mailout.goes_on_by(now, lock_seconds)
    died = mailout.status is Status.PROCESSING and _died_here(mailout.locked_by or "", socket.gethostname())
    if by is None and not died:
        return None
    if up_runs:
        latest = by or now + _lease_lasts(mailout, lock_seconds, now) + QUEUE_RUN_SECONDS
        when = spoken(latest, engine.limits.timezone)
        return f"was interrupted; it goes on by itself, by {when} at the latest"
    return f"was interrupted; {goes_on(engine, mailout)}"


def goes_on(engine: Engine, mailout: Mailout) -> str:
    """By itself, or by the command that goes on with it."""
    by_itself = "it goes on by itself once `mailout up` runs"
    if mailout.is_test or mailout.is_rehearsal is not engine.rehearses:
        return by_itself  # sent by hand it would be another one, and might reach everybody
    if mailout.kind is Kind.ARTICLE:
        again = "the command that began it"
    elif mailout.kind is Kind.NOTION or names_a_file(mailout.ref):
        again = f"mailout send {mailout.ref}"
    else:
        again = f"mailout send FILE.md, the file with `id: {mailout.ref}`"
    return f"{by_itself}, or now with: {again}"


def _lease_lasts(mailout: Mailout, lock_seconds: float, now: float) -> float:
    return max(0.0, lock_seconds - mailout.silent_for(now, lock_seconds))


def _died_here(worker: str, machine: str) -> bool:
    """Whether it was a process of this machine that has ended: `mailout send` may be at work meanwhile."""
    name, _, process = worker.rpartition("-")
    if name != machine or not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # it is there, as another user's
        return False
    return False
