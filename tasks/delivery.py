"""Sending: one task run for many batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from mailout.app.engine import Engine
from mailout.app.sending import goes_on
from mailout.base.clock import Clock
from mailout.outbox.delivery.protocol import Claimed, Ledger, Result
from tasks.artifacts import RunArtifact
from tasks.letter import LetterRef
from tasks.logs import with_engine

TIME_SLICE_SECONDS = 45.0
"""How long a mailout sends before it is asked whose turn it is."""
PROGRESS_SECONDS = 3.0


class Progress:
    """The progress of one letter, as it is recorded. It moves every few seconds at most."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bar: RunArtifact | None = None
        self._next = 0.0

    def begin(self, letter: LetterRef) -> None:
        if self._bar is None:
            description = f"“{letter}”: how much of it has been sent"
            self._bar = RunArtifact("progress", letter.artifact_key("progress"), description)
            self._bar.show(0.0)

    def recorded(self, results: Sequence[tuple[Claimed, Result]], ledger: Ledger | None) -> None:
        now = self._clock.monotonic()
        if ledger is not None and now >= self._next:
            self._next = now + PROGRESS_SECONDS
            self.show(ledger)

    def show(self, ledger: Ledger) -> None:
        if self._bar is not None and ledger.recipients:
            self._bar.show(100 * ledger.done / ledger.recipients)


@task(name="send", task_run_name="send: {letter}", cache_policy=NO_CACHE, retries=0)
@with_engine
def send(
    engine: Engine, letter: LetterRef, progress: Progress, still_its_turn: Callable[[], bool]
) -> LetterRef:
    """Send until it is done, has to wait, or another mailout has its turn.

    Never retried: its retries are the outbox's own.
    """
    progress.begin(letter)
    letter.more_to_send = _send_time_slice(engine, letter.id, progress)
    while letter.more_to_send and still_its_turn():
        letter.more_to_send = _send_time_slice(engine, letter.id, progress)
    return letter


def _send_time_slice(engine: Engine, mailout_id: str, progress: Progress) -> bool:
    """Whether there is more to do."""
    logger = get_run_logger()
    report = engine.sending.send_for(mailout_id, TIME_SLICE_SECONDS, progress)
    mailout = engine.sending.conclude(mailout_id, report)
    ledger = mailout.ledger
    logger.info("%s: %d of %d sent, %d pending", report.ended, ledger.sent, ledger.recipients, ledger.pending)
    if mailout.defer_reason is not None:
        logger.warning("deferred: %s. %s", mailout.defer_reason, mailout.defer_note or "")
    return goes_on(report, mailout)
