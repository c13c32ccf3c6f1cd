"""A mailout that the queue sends: a run of its own below the queue's, by its name, with its five steps.

In one run of the queue mailouts take turns. So each has a run that waits between its turns: a flow that is a
generator, in a context of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from types import TracebackType
from typing import Any, TypeVar

from prefect import State, flow
from prefect.exceptions import FailedRun
from prefect.states import Completed

from flows.delivery import Delivery
from flows.heartbeats import heartbeats
from flows.outcome import outcome_of
from mailout.base.errors import Abort, AbortCode, MailoutError, SourceUnavailable
from mailout.outbox.queue.mailout import Mailout
from tasks.logs import hidden, redacted

T = TypeVar("T")


class QueuedMailouts:
    """Those of one run of the queue. Fulfils `mailout.app.queue_run.MailoutSteps`.

    Left, it ends the runs that are still open: of mailouts that have to wait, or that were cut off.
    """

    def __init__(self) -> None:
        self._context = copy_context()  # the queue's: a mailout may come in while another one is sent
        self._runs: dict[str, QueuedRun] = {}

    def enqueue(self, ref: str, test: bool | None = None) -> Mailout:
        """From a page or file into the queue. An `intake.requests.Enqueue`."""
        run = QueuedRun(ref, self._context.copy())
        try:
            mailout = run.do(lambda: run.steps.enqueue(ref, test))
        except Exception:
            run.end()
            raise
        run.mailout_id = mailout.id
        if self._runs.setdefault(mailout.id, run) is not run:
            run.end()  # asked for twice
        return mailout

    def begin(self, id: str) -> bool:
        if id not in self._runs:
            self._runs[id] = QueuedRun(id, self._context.copy(), mailout_id=id)
        run = self._runs[id]
        return run.do(lambda: run.steps.begin(id))

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
    """One run of `send_queued`: does what it is told, one step after the other, until it is ended."""

    def __init__(self, ref: str, context: Context, mailout_id: str | None = None) -> None:
        self.mailout_id = mailout_id
        self.steps = Delivery()
        self.step: Callable[[], None] | None = None
        self.error: Exception | None = None
        self._context = context
        context.run(_CURRENT.set, self)
        self._run: Generator[None, None, Any] = context.run(send_queued, ref)

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
        self._context.run(next, self._run)
        if failed:
            self.error = self.error or failed[0]
            raise failed[0]
        return result[0]

    def end(self, error: BaseException | None = None) -> None:
        """How the mailout stands is how the run ends; or with this error, if the queue's ends with it."""
        self.step = None
        raised = [type(one) for one in (error, self.error) if one is not None]
        with suppress(StopIteration, FailedRun, *raised):
            if error is None:
                self._context.run(next, self._run)
            else:
                self._context.run(self._run.throw, error)


_CURRENT: ContextVar[QueuedRun] = ContextVar("queued_run")


@flow(name="send_queued", flow_run_name="{ref}", retries=0, log_prints=False)
@heartbeats
@redacted
def send_queued(ref: str) -> Generator[None, None, State[Any]]:
    """One mailout, in its turns. Below `run_queue` alone.

    Args:
        ref: The page or file that it comes from, or its id if it was in the queue before.
    """
    run = _CURRENT.get()
    while run.step is not None:
        run.step()
        yield
    return _how_it_ended(run)


def _how_it_ended(run: QueuedRun) -> State[Any]:
    error = run.error
    if isinstance(error, SourceUnavailable):
        return Completed(message=hidden(f"The queue tries again: {error}"), name="Not read yet")
    if isinstance(error, Abort) and error.code is AbortCode.MAILOUT_ALREADY_SENT:
        return Completed(message=hidden(str(error)), name="Already sent")
    if error is not None and (run.mailout_id is None or not isinstance(error, MailoutError)):
        raise error
    return outcome_of(str(run.mailout_id))  # a mailout that cannot be sent waits for a person, and says so
