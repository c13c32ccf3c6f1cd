"""A mailout that the queue sends: a run of its own below the queue's, by its name, with its five steps.

In one run of the queue mailouts take turns. So each has a run that waits between its turns: a flow that is a
generator, in a context of its own. Prefect offers generators as flows, but expects to drive them itself; it
knows no other flow that pauses within a process. Everything about that is in `QueuedRun`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import ExitStack
from contextvars import Context, ContextVar, copy_context
from types import TracebackType
from typing import Any, TypeVar
from uuid import UUID

import httpx
from prefect import State
from prefect.context import SyncClientContext
from prefect.exceptions import CancelledRun, FailedRun, PrefectException, TerminationSignal
from prefect.runtime import flow_run
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.states import Completed

from flows.delivery import Delivery, watch_for_cancel
from flows.runs import first_name, mailout_flow, outcome_of
from mailout.app.engine import Engine
from mailout.base.errors import MailoutError, SourceUnavailable
from mailout.kinds.mailouts.readiness import AlreadySent, MarkedAsSent, TakenBack
from mailout.outbox.queue.mailout import Mailout
from tasks.display import DISPLAY
from tasks.logs import hidden

log = logging.getLogger("mailout.flows")

SERVER_SECONDS, SERVER_RETRIES = 5.0, 1
"""For one answer of the server when a letter's run begins or ends: the letter waits for it. Once more, since
its database may be locked for a moment."""
NO_ANSWER = (httpx.HTTPError, PrefectException, OSError)

T = TypeVar("T")


class QueuedMailouts:
    """Those of one run of the queue. Fulfils `mailout.app.queue_run.MailoutSteps`.

    At its end it ends the runs that are still open: of mailouts that have to wait, or that were cut off.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._context = copy_context()  # the queue's: a mailout may come in while another one is sent
        self._runs: dict[str, QueuedRun] = {}

    def enqueue(self, ref: str, test: bool | None = None, asked_at: float | None = None) -> Mailout:
        """From a page or file into the queue. A `requests.Enqueue`."""
        run = QueuedRun(self._engine, ref, self._context.copy())
        try:
            mailout = run.do(lambda: run.steps.enqueue(ref, test, asked_at))
        except Exception:
            run.end()
            raise
        run.mailout_id = mailout.id
        if self._runs.setdefault(mailout.id, run) is not run:
            run.end()  # asked for twice
        return mailout

    def begin(self, id: str) -> bool:
        if id not in self._runs:
            self._runs[id] = QueuedRun(self._engine, id, self._context.copy(), mailout_id=id)
        run = self._runs[id]
        return run.do(lambda: run.begin(id))

    def send(self, id: str, still_its_turn: Callable[[], bool]) -> bool:
        run = self._runs[id]
        return run.do(lambda: run.steps.send(still_its_turn))

    def end(self, id: str) -> None:
        run = self._runs.pop(id)
        try:
            run.do(run.steps.end)
        finally:
            run.end()

    def __enter__(self) -> QueuedMailouts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for run in self._runs.values():
            run.end(error)


class QueuedRun:
    """One run of `send_queued`: does what it is told, one step after the other, until it is ended.

    If Prefect's server does not answer within seconds, the steps are done in the queue's own run: mail does
    not wait. If it does not answer in the end, the display tells it later how the run ended.
    """

    def __init__(self, engine: Engine, ref: str, context: Context, mailout_id: str | None = None) -> None:
        self.mailout_id = mailout_id
        self.steps = Delivery(engine)
        self.step: Callable[[], None] | None = None
        self.error: Exception | None = None
        self.id: str | None = None  # of Prefect's run, once there is one
        self.ended: State[Any] | None = None
        self._engine = engine
        self._watch: tuple[str, str] | None = None
        self._context = context
        self._client = ExitStack()
        context.run(_CURRENT.set, self)
        self._run: Generator[None, None, Any] | None = context.run(send_queued, ref)

    def _use_impatient_client(self) -> None:
        """In this run's context, and until its end: Prefect's own client would wait for minutes."""
        self._client.enter_context(temporary_settings({PREFECT_CLIENT_MAX_RETRIES: SERVER_RETRIES}))
        self._client.enter_context(SyncClientContext(httpx_settings={"timeout": SERVER_SECONDS}))

    def begin(self, id: str) -> bool:
        if self.id is not None:
            self._watch = watch_for_cancel(self._engine, id)
        return self.steps.begin(id)

    def do(self, step: Callable[[], T]) -> T:
        """In the run, as one of its steps. What goes wrong there is raised here, too."""
        result: list[T] = []
        failed: list[Exception] = []

        def tried() -> None:
            try:
                result.append(step())
            except Exception as error:  # noqa: BLE001
                failed.append(error)  # the run goes on: what is still to be done, such as the report, is done

        self.step = tried
        self._next()
        if failed:
            self.error = self.error or failed[0]
            raise failed[0]
        return result[0]

    def _next(self) -> None:
        if self.id is None and self._run is not None:
            self._begin(self._run)
        elif self._run is not None:
            self._context.run(next, self._run)
        elif self.step is not None:
            self.step()

    def _begin(self, run: Generator[None, None, Any]) -> None:
        """With the first step. If the server does not answer, all steps are the queue's."""
        try:
            if not DISPLAY.server_answers:
                raise ConnectionError("Prefect's server did not answer a moment ago.")
            self._context.run(self._use_impatient_client)
            self._context.run(next, run)
        except NO_ANSWER as error:
            if self.id is not None:
                raise
            log.warning("This letter's steps are shown in the run of the queue: %s", error)
            self._context.run(self._client.close)
            self._run, self.steps.has_own_run = None, False
            self._next()

    def end(self, error: BaseException | None = None) -> None:
        """How the mailout stands is how the run ends; or with this error, if the queue's ends with it."""
        if self._watch is not None:
            DISPLAY.end_repeat(self._watch)
        if self._run is None:
            return
        self.step = None
        try:
            if error is None or self._is_cancelled(error):
                self._context.run(next, self._run)
            else:
                self._context.run(self._run.throw, error)
        except (StopIteration, FailedRun, CancelledRun):
            return
        except BaseException as raised:
            if isinstance(raised, NO_ANSWER) and self.ended is not None:
                self._show_end(self.ended)
            elif raised is not error and raised is not self.error:
                raise
        finally:
            self._context.run(self._client.close)

    def _is_cancelled(self, error: BaseException) -> bool:
        """Somebody cancelled the queue's run: so it paused this mailout, which is how this run ends."""
        if not isinstance(error, TerminationSignal) or self.mailout_id is None:
            return False
        return outcome_of(self._engine, self.mailout_id).is_cancelled()

    def _show_end(self, state: State[Any]) -> None:
        id = UUID(self.id)
        DISPLAY.show(("state", id), lambda client: client.set_flow_run_state(id, state, force=True))


_CURRENT: ContextVar[QueuedRun] = ContextVar("queued_run")


@mailout_flow(flow_run_name=first_name)
def send_queued(engine: Engine, ref: str) -> Generator[None, None, State[Any]]:
    """One mailout, in its turns. Below `run_queue` alone.

    Args:
        ref: The page or file that it comes from, or its id if it was in the queue before.
    """
    run = _CURRENT.get()
    run.id = str(flow_run.id)
    while run.step is not None:
        run.step()
        yield
    run.ended = _how_it_ended(engine, run)
    return run.ended


def _how_it_ended(engine: Engine, run: QueuedRun) -> State[Any]:
    error = run.error
    if isinstance(error, SourceUnavailable):
        return Completed(message=hidden(f"The queue tries again: {error}"), name="Not read yet")
    if isinstance(error, TakenBack):
        return Completed(message=hidden(str(error)), name="Taken back")
    if isinstance(error, AlreadySent) and not isinstance(error, MarkedAsSent):
        return Completed(message=hidden(str(error)), name="Already sent")
    if error is not None and (run.mailout_id is None or not isinstance(error, MailoutError)):
        raise error
    # A mailout that cannot be sent waits for a person, and says so.
    return outcome_of(engine, str(run.mailout_id))
