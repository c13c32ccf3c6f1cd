"""Sending: one task run for many batches."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from uuid import UUID

from prefect import get_run_logger, task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE

from mailout.app import wiring
from mailout.app.sending import goes_on
from mailout.outbox.delivery.protocol import Claimed, Ledger, Result
from tasks.letter import Letter
from tasks.logs import redacted

log = logging.getLogger("mailout.flows")

TIME_SLICE_SECONDS = 45.0
"""How long a mailout sends before it is asked whose turn it is."""
PROGRESS_SECONDS = 3.0


class Progress:
    """The progress artifact. It moves every few seconds at most, in a thread of its own: mail goes on while
    Prefect's server does not answer."""

    def __init__(self) -> None:
        self._artifact: UUID | None = None
        self._next = 0.0
        self._update: threading.Thread | None = None

    def begin(self, letter: Letter) -> None:
        if self._artifact is None:
            made = create_progress_artifact(
                progress=0.0,
                key=letter.artifact_key("progress"),
                description=f"“{letter}”: how much of it has been sent",
            )
            if not isinstance(made, UUID):
                raise TypeError(made)
            self._artifact = made

    def recorded(self, results: Sequence[tuple[Claimed, Result]], ledger: Ledger | None) -> None:
        now = wiring.engine().clock.monotonic()
        if ledger is not None and now >= self._next:
            self._next = now + PROGRESS_SECONDS
            self._show_aside(ledger)

    def _show_aside(self, ledger: Ledger) -> None:
        if self._update is None or not self._update.is_alive():
            show = partial(copy_context().run, self._try_to_show, ledger)
            self._update = threading.Thread(target=show, name="progress", daemon=True)
            self._update.start()

    def _try_to_show(self, ledger: Ledger) -> None:
        try:
            self.show(ledger)
        except Exception as error:  # noqa: BLE001 (a picture of the sending, no part of it)
            log.warning("the progress is not shown: %s", error)

    def show(self, ledger: Ledger) -> None:
        if self._artifact is not None and ledger.recipients:
            update_progress_artifact(self._artifact, progress=100 * ledger.done / ledger.recipients)


@task(name="send", task_run_name="send: {letter}", cache_policy=NO_CACHE, retries=0)
@redacted
def send(letter: Letter, progress: Progress, still_its_turn: Callable[[], bool]) -> Letter:
    """Send until it is done, has to wait, or another mailout has its turn.

    Never retried: its retries are the outbox's own.
    """
    progress.begin(letter)
    letter.more_to_send = _send_time_slice(letter.id, progress)
    while letter.more_to_send and still_its_turn():
        letter.more_to_send = _send_time_slice(letter.id, progress)
    return letter


def _send_time_slice(mailout_id: str, progress: Progress) -> bool:
    """Whether there is more to do."""
    engine = wiring.engine()
    logger = get_run_logger()
    report = engine.sending.send_for(mailout_id, TIME_SLICE_SECONDS, progress)
    mailout = engine.sending.conclude(mailout_id, report)
    ledger = mailout.ledger
    logger.info("%s: %d of %d sent, %d pending", report.ended, ledger.sent, ledger.recipients, ledger.pending)
    if mailout.defer_reason is not None:
        logger.warning("deferred: %s. %s", mailout.defer_reason, mailout.defer_note or "")
    return goes_on(report, mailout)
