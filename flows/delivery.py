"""Sending one mailout as Prefect's tasks: what `send_mailout` and `run_queue` have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

import httpx
from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectException, TerminationSignal
from prefect.runtime import flow_run

from mailout import wiring
from mailout.queue import actions
from mailout.queue.mailout import Status
from tasks.audience import freeze
from tasks.delivery import send_time_slice, start
from tasks.reporting import report, show_progress


class Delivery:
    """Fulfils `mailout.queue_run.MailoutSteps`."""

    def __init__(self) -> None:
        self._progress: dict[str, UUID] = {}

    def begin(self, id: str) -> bool:
        freeze(id)
        self._progress[id] = show_progress(id)
        return start(id)

    def send_time_slice(self, id: str) -> bool:
        return send_time_slice(id, self._progress[id])

    def end(self, id: str) -> None:
        report(id, self._progress.pop(id, None))


@contextmanager
def let_go_if_ended(in_hand: Sequence[str]) -> Iterator[None]:
    """Whoever cancels a flow run wants its mailouts to stop: they wait for a person.

    A process that is only asked to end (a new version, a machine that restarts) lets them go, and the next
    run of the queue continues them.
    """
    try:
        yield
    except TerminationSignal:
        store = wiring.engine().store
        cancelled = _cancelled()
        for id in in_hand:
            if cancelled and store.mailout(id).status in (Status.PENDING, Status.PROCESSING):
                actions.pause(store, id, "It was cancelled in Prefect.")
            else:
                store.release(id)
        raise


def _cancelled() -> bool:
    """Whether Prefect's server knows of somebody who cancelled this run."""
    try:
        with get_client(sync_client=True) as client:
            state = client.read_flow_run(UUID(str(flow_run.id))).state
    except (httpx.HTTPError, PrefectException):
        return False  # nor could anybody have told it
    return state is not None and (state.is_cancelling() or state.is_cancelled())
