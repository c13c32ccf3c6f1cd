"""Sending one mailout as Prefect's tasks: what `send_mailout` and `run_queue` have in common."""

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
from mailout import wiring
from mailout.queue import actions
from mailout.queue.mailout import Mailout, Status
from tasks.audience import resolve_recipients
from tasks.content import load_mailout, load_queued, render_content, use_rendered
from tasks.delivery import Progress, send
from tasks.letter import Letter
from tasks.reporting import report


class Delivery:
    """The steps of a mailout, in the run that sends it. Fulfils `mailout.queue_run.MailoutSteps`."""

    def __init__(self) -> None:
        self._letters: dict[str, Letter] = {}
        self._progress: dict[str, Progress] = {}

    def enqueue(self, ref: str, test: bool | None = None) -> Mailout:
        """From a page or file into the queue. An `intake.requests.Enqueue`."""
        loaded = load_mailout(ref, test)
        letter = render_content(loaded)
        self._know(letter)
        return wiring.engine().store.mailout(letter.id)

    def begin(self, id: str) -> bool:
        if id not in self._letters:
            self._know(use_rendered(load_queued(id)))
        resolve_recipients(self._letters[id])
        started = wiring.engine().sending.start(id).status is Status.PROCESSING
        if started and flow_run.id:
            wiring.engine().store.keep_run(id, str(flow_run.id))  # the dashboard links to it
        return started

    def send(self, id: str, still_its_turn: Callable[[], bool]) -> bool:
        return send(self._letters[id], self._progress[id], still_its_turn).more_to_send

    def end(self, id: str) -> None:
        if id in self._letters:  # else it could not even be loaded, which the run says
            report(self._letters[id], self._progress[id])

    def add(self, mailout: Mailout) -> None:
        """One that steps of its own have loaded and rendered."""
        self._know(Letter(mailout))

    def _know(self, letter: Letter) -> None:
        self._letters[letter.id] = letter
        self._progress.setdefault(letter.id, Progress())
        name_run([str(one) for one in self._letters.values()])


def deliver(steps: Delivery, mailout_id: str) -> State[Any]:
    """The rest of the steps, for whoever has loaded and rendered it; how it ended."""
    with let_go_if_ended([mailout_id]):
        if steps.begin(mailout_id):
            steps.send(mailout_id, still_its_turn=lambda: True)
        steps.end(mailout_id)
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
