"""Sending, one time slice at a time."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from prefect import get_run_logger, task
from prefect.artifacts import update_progress_artifact
from prefect.cache_policies import NO_CACHE

from mailout import wiring
from mailout.delivery.protocol import Claimed, Ledger, Result
from mailout.queue.mailout import Status
from mailout.sending import goes_on
from tasks.logs import redacted

TIME_SLICE_SECONDS = 45.0
"""A task run costs Prefect's server tens of milliseconds: one for many batches, not one a batch."""
PROGRESS_SECONDS = 3.0


@task(name="take its turn", cache_policy=NO_CACHE)
@redacted
def start(mailout_id: str) -> bool:
    """Whether it may be sent now; if not, the queue says why and until when."""
    return wiring.engine().sending.start(mailout_id).status is Status.PROCESSING


@task(name="send", cache_policy=NO_CACHE, retries=0)
@redacted
def send_time_slice(mailout_id: str, progress: UUID | None = None) -> bool:
    """Send for a while; True while there is more to do. Never retried: its retries are the outbox's own."""
    engine = wiring.engine()
    logger = get_run_logger()
    report = engine.sending.send_for(mailout_id, TIME_SLICE_SECONDS, Progress(progress))
    mailout = engine.sending.conclude(mailout_id, report)
    ledger = mailout.ledger
    logger.info("%s: %d of %d sent, %d pending", report.ended, ledger.sent, ledger.recipients, ledger.pending)
    if mailout.defer_reason is not None:
        logger.warning("deferred: %s. %s", mailout.defer_reason, mailout.defer_note or "")
    return goes_on(report, mailout)


class Progress:
    """Moves the progress artifact, every few seconds at most: an update costs 11–45 ms."""

    def __init__(self, artifact: UUID | None) -> None:
        self._artifact = artifact
        self._clock = wiring.engine().clock
        self._next = 0.0

    def recorded(self, results: Sequence[tuple[Claimed, Result]], ledger: Ledger | None) -> None:
        now = self._clock.monotonic()
        if self._artifact is None or ledger is None or not ledger.recipients or now < self._next:
            return
        self._next = now + PROGRESS_SECONDS
        update_progress_artifact(self._artifact, progress=100 * ledger.done / ledger.recipients)
