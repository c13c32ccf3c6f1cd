"""Sending one mailout as Prefect's tasks: what `send_mailout`, `send_article` and `send_queued` share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import httpx
from prefect import State
from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectException, TerminationSignal
from prefect.runtime import flow_run

from flows.names import name_run
from flows.outcome import outcome_of
from mailout.app import wiring
from mailout.outbox.queue import actions
from mailout.outbox.queue.mailout import Mailout, Status
from tasks.audience import resolve_recipients
from tasks.content import load_mailout, load_queued, render_content, use_rendered
from tasks.delivery import Progress, send
from tasks.letter import Letter
from tasks.reporting import report


class Delivery:
    """The five steps of one mailout, in the run that sends it."""

    def __init__(self) -> None:
        self._letter: Letter | None = None
        self._progress = Progress()

    def enqueue(self, ref: str, test: bool | None = None) -> Mailout:
        """From a page or file into the queue. An `intake.requests.Enqueue`."""
        letter = self._know(render_content(load_mailout(ref, test)))
        return wiring.engine().store.mailout(letter.id)

    def add(self, letter: Letter) -> None:
        """One that steps of its own have loaded and rendered."""
        self._know(letter)

    def begin(self, id: str) -> bool:
        """Freeze it and start to send it; False: it has to wait."""
        letter = self._letter or self._know(use_rendered(load_queued(id)))
        resolve_recipients(letter)
        started = wiring.engine().sending.start(id).status is Status.PROCESSING
        if started and flow_run.id:
            wiring.engine().store.keep_run(id, str(flow_run.id))  # the dashboard links to it
        return started

    def send(self, still_its_turn: Callable[[], bool]) -> bool:
        """Time slices for as long as it is its turn; True while there is more to do."""
        return self._letter is not None and send(self._letter, self._progress, still_its_turn).more_to_send

    def end(self) -> None:
        if self._letter is not None:  # else it could not even be loaded, which the run says
            report(self._letter, self._progress)

    def _know(self, letter: Letter) -> Letter:
        self._letter = letter
        name_run(str(letter))
        return letter


def deliver(steps: Delivery, mailout_id: str) -> State[Any]:
    """The rest of the steps, for whoever has loaded and rendered it; how it ended."""
    with let_go_if_ended([mailout_id]):
        if steps.begin(mailout_id):
            steps.send(still_its_turn=lambda: True)
        steps.end()
    return outcome_of(mailout_id)


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
