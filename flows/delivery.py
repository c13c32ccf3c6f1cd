"""Sending one mailout as Prefect's tasks: what `send_mailout`, `send_article` and `send_queued` share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import httpx
from prefect import State
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.exceptions import PrefectException, TerminationSignal
from prefect.runtime import flow_run
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.states import Completed

from flows.runs import CANCELLED_IN_PREFECT, PAUSED_IN_PREFECT, STOPPED_IN_PREFECT, name_run, outcome_of
from mailout.app.engine import Engine
from mailout.insight.history.history_rows import keep_run
from mailout.kinds.mailouts.readiness import AlreadySent
from mailout.outbox.queue import actions
from mailout.outbox.queue.mailout import Mailout, Status
from mailout.outbox.queue.port import mailout_or_none
from tasks.display import DISPLAY
from tasks.logs import hidden
from tasks.steps import (
    LetterRef,
    Progress,
    load_mailout,
    load_queued,
    render_content,
    report,
    resolve_recipients,
    send,
    use_rendered,
)

CANCEL_SECONDS = 3.0
"""How often the server is asked whether somebody has cancelled or paused a run."""
SIGNAL_SECONDS = 5.0
"""For the server's answer when the process is asked to end: it has half a minute for everything."""


class Delivery:
    """The five steps of one mailout, in the run that sends it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.has_own_run = True  # by the letter's name
        self._letter: LetterRef | None = None
        self._progress = Progress(engine.clock)

    def enqueue(self, ref: str, test: bool | None = None, asked_at: float | None = None) -> Mailout:
        """From a page or file into the queue. A `requests.Enqueue`."""
        try:
            loaded = load_mailout(ref, test, asked_at)
        except AlreadySent as sent:
            self._name(hidden(sent.subject))
            raise
        self._name(hidden(loaded.subject))  # should it be refused
        letter = self.add(render_content(loaded))
        return self.engine.store.mailout(letter.id)

    def begin(self, id: str) -> bool:
        """Freeze it and start to send it; False: it has to wait."""
        letter = self._letter or self.add(use_rendered(load_queued(id)))
        resolve_recipients(letter)
        started = self.engine.sending.start(id).status is Status.PROCESSING
        if started and flow_run.id:
            keep_run(self.engine.store, id, str(flow_run.id))  # the dashboard links to it
        return started

    def send(self, still_its_turn: Callable[[], bool]) -> bool:
        """Time slices for as long as it is its turn; True while there is more to do."""
        return self._letter is not None and send(self._letter, self._progress, still_its_turn).more_to_send

    def end(self) -> None:
        if self._letter is not None:  # else it could not even be loaded, which the run says
            report(self._letter, self._progress)

    def add(self, letter: LetterRef) -> LetterRef:
        """One that is loaded and rendered, by whichever steps: from now on the run has its name."""
        self._letter = letter
        self._name(str(letter), letter.id)
        return letter

    def _name(self, name: str, mailout_id: str | None = None) -> None:
        if self.has_own_run and name:  # without a subject it keeps the name of what was asked for
            name_run(name, mailout_id)


def deliver(steps: Delivery, mailout_id: str) -> State[Any]:
    """The rest of the steps, for whoever has loaded and rendered it; how it ended."""
    # A worker sends a signal, but only for Cancel.
    watch = watch_for_cancel(steps.engine, mailout_id)
    try:
        with let_go_if_ended(steps.engine, [mailout_id]):
            if steps.begin(mailout_id):
                steps.send(still_its_turn=lambda: True)
            steps.end()
    finally:
        DISPLAY.end_repeat(watch)
    return outcome_of(steps.engine, mailout_id)


# ── Prefect's Retry button ──


def deliver_again(engine: Engine) -> State[Any] | None:
    """A run that Prefect starts a second time goes on with its mailout; None: it is no retry, or it has none.

    What failed is tried again, and no others, as `retry_mailout` does it.
    """
    if flow_run.run_count <= 1:
        return None
    tagged = (mailout_or_none(engine.store, tag) for tag in flow_run.tags)
    mailout = next((one for one in tagged if one is not None), None)
    if mailout is None:
        return None
    id = mailout.id
    if mailout.status is Status.COMPLETED and mailout.ledger.failed and mailout.archived_at is None:
        actions.retry(engine.store, id)
    elif outcome_of(engine, id).is_cancelled():
        actions.resume(engine.store, id)  # by Prefect's other button
    elif mailout.status in (Status.COMPLETED, Status.CANCELLED):
        ended = outcome_of(engine, id)
        why = "No message of it has failed: there is nothing to try again."
        message = f"{why} {ended.message}"
        return Completed(message=message, name="Nothing to retry") if ended.is_completed() else ended
    return deliver(Delivery(engine), id)


# ── Prefect's Cancel and Pause buttons ──


def watch_for_cancel(engine: Engine, mailout_id: str) -> tuple[str, str]:
    """While the current run sends a mailout: if somebody cancels or pauses the run, the mailout is paused.

    Its sender then ends by itself. What to hand to `DISPLAY.end_repeat` in the end.
    """
    run = UUID(str(flow_run.id))

    def look(client: SyncPrefectClient) -> None:
        if note := _stopped(client.read_flow_run(run).state):
            _pause(engine, mailout_id, note)

    what = ("cancelled", str(run))
    DISPLAY.repeat(what, look, first=0.0, every=CANCEL_SECONDS)
    return what


@contextmanager
def let_go_if_ended(engine: Engine, in_hand: Sequence[str]) -> Iterator[None]:
    """Whoever cancels a flow run wants its mailouts to stop: they wait for a person.

    A process that is only asked to end (a new version, a machine that restarts) lets them go, and the next
    run of the queue continues them.
    """
    try:
        yield
    except TerminationSignal:
        note = _somebody_stopped_it()
        for id in in_hand:
            if not (note and _pause(engine, id, note)):
                engine.store.release(id)
        raise


def _pause(engine: Engine, id: str, note: str) -> bool:
    """Whether it was to be paused."""
    mailout = engine.store.mailout(id)
    is_open = mailout.status in (Status.PENDING, Status.PROCESSING)
    if is_open and mailout.defer_note not in STOPPED_IN_PREFECT:
        actions.pause(engine.store, id, note)
    return is_open


def _somebody_stopped_it() -> str | None:
    """What Prefect's server knows of somebody who cancelled or paused this run."""
    try:
        with (
            temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 1}),
            get_client(sync_client=True, httpx_settings={"timeout": SIGNAL_SECONDS}) as client,
        ):
            return _stopped(client.read_flow_run(UUID(str(flow_run.id))).state)
    except (httpx.HTTPError, PrefectException):
        return None  # nor could anybody have told it


def _stopped(state: State[Any] | None) -> str | None:
    if state is None or not (state.is_paused() or state.is_cancelling() or state.is_cancelled()):
        return None
    return PAUSED_IN_PREFECT if state.is_paused() else CANCELLED_IN_PREFECT
