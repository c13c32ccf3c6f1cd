"""Sending one mailout as Prefect's tasks: what `send_mailout` and `run_queue` have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from prefect.exceptions import TerminationSignal

from mailout import wiring
from mailout.queue import acts
from mailout.queue.model import Status
from tasks.audience import freeze
from tasks.delivery import send_stretch, start
from tasks.reporting import report, show_progress


class Delivery:
    """Fulfils `mailout.queue_run.Story`."""

    def __init__(self) -> None:
        self._progress: dict[str, UUID] = {}

    def begin(self, id: str) -> bool:
        freeze(id)
        self._progress[id] = show_progress(id)
        return start(id)

    def stretch(self, id: str) -> bool:
        return send_stretch(id, self._progress[id])

    def end(self, id: str) -> None:
        report(id, self._progress.pop(id, None))


@contextmanager
def paused_if_cancelled(in_hand: Sequence[str]) -> Iterator[None]:
    """Whoever cancels a flow run wants it to stop: the queue must not take it up a minute later."""
    try:
        yield
    except TerminationSignal:
        store = wiring.engine().store
        for id in in_hand:
            if store.mailout(id).status in (Status.PENDING, Status.PROCESSING):
                acts.pause(store, id, "It was cancelled in Prefect.")
        raise
