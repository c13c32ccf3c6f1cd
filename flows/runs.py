"""Our runs, as Prefect knows them: their signs of life, their names, how they end.

`deployments/unresponsive-runs.yaml` listens for the signs of life of a run that a worker has started. Not
Prefect's own heartbeats: it tells of no end by a name that does not change, and an automation on all its
events of flow runs would write to Prefect's database at every one of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID, uuid4

from prefect import Flow, State, flow
from prefect.client.orchestration import SyncPrefectClient
from prefect.runtime import deployment, flow_run
from prefect.states import Cancelled, Completed, Failed

from flows.orphans import end_with_up
from mailout.app.engine import Engine
from mailout.outbox.queue.mailout import DeferReason, Mailout, MailoutOutcome, Status
from tasks.display import DISPLAY
from tasks.logs import hidden, with_engine

P = ParamSpec("P")
R = TypeVar("R")

HEARTBEAT = "mailout.flow-run.heartbeat"
ENDED = "mailout.flow-run.ended"
FIRST_HEARTBEAT_SECONDS, HEARTBEAT_SECONDS = 5.0, 30.0
"""The first one of a whole process: most are over sooner and send none. When a run begins or ends, Prefect's
server writes so much that on SQLite its automations often fail to read an event ("database is locked"), and
keep it in a file for ever."""
CANCELLED_IN_PREFECT, PAUSED_IN_PREFECT = "It was cancelled in Prefect.", "It was paused in Prefect."
"""Why a mailout is paused whose run somebody has cancelled or paused on Prefect's pages."""
STOPPED_IN_PREFECT = (CANCELLED_IN_PREFECT, PAUSED_IN_PREFECT)
NAME_LENGTH = 200


def mailout_flow(**options: Any) -> Callable[[Callable[Concatenate[Engine, P], R]], Flow[P, R]]:
    """A flow of ours: given the engine, with signs of life, and never retried by Prefect.

    Its function may be a generator: that is one of several runs in a process, and does not wait for Prefect.
    """

    def decorate(function: Callable[Concatenate[Engine, P], R]) -> Flow[P, R]:
        around = beating if inspect.isgeneratorfunction(function) else whole_process
        run = with_engine(function, around)
        return flow(name=function.__name__, retries=0, log_prints=False, **options)(run)

    return decorate


@contextmanager
def whole_process() -> Iterator[None]:
    """Around a run that has its process for itself: it ends with `mailout up`, and all of it is shown."""
    end_with_up()
    try:
        with beating(FIRST_HEARTBEAT_SECONDS):
            yield
    finally:
        DISPLAY.finish()


@contextmanager
def beating(first: float = 0.0) -> Iterator[None]:
    """At once where a letter is sent: if its process is killed, nobody else says so of this run."""
    if not deployment.id:  # a command's own: whoever started it sees how it ends
        yield
        return
    id = str(flow_run.id)
    DISPLAY.repeat(
        ("heartbeat", id),
        lambda client: emit(client, HEARTBEAT, f"prefect.flow-run.{id}"),
        first=first,
        every=HEARTBEAT_SECONDS,
    )
    try:
        yield
    finally:
        if DISPLAY.end_repeat(("heartbeat", id)):
            DISPLAY.show(("ended", id), lambda client: emit(client, ENDED, f"prefect.flow-run.{id}"))


def emit(client: SyncPrefectClient, event: str, resource: str) -> None:
    """Over HTTP, answered: what `emit_event` sends is gone if the process ends soon."""
    body = {
        "id": str(uuid4()),
        "occurred": datetime.now(UTC).isoformat(),
        "event": event,
        "resource": {"prefect.resource.id": resource},
    }
    client.request("POST", "/events", json=[body])


def name_run(name: str, mailout_id: str | None = None) -> None:
    """After the mailout that it sends, whose id becomes a tag: by it a retry of the run finds the mailout."""
    id = flow_run.id
    if not id:
        return
    shown = name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 1]}…"
    tags = sorted({*flow_run.tags, *([mailout_id] if mailout_id else [])})
    DISPLAY.show(("name", id), lambda client: client.update_flow_run(UUID(str(id)), name=shown, tags=tags))


def first_name() -> str:
    """Until the subject is known: what was asked for. A run that is retried keeps the name that it has.

    Before the run has begun: the settings have not been read, and must not be.
    """
    if flow_run.run_count:
        return str(flow_run.name)
    parameters = flow_run.parameters
    return str(parameters.get("ref") or parameters.get("article_key") or flow_run.flow_name)


def outcome_of(engine: Engine, mailout_id: str) -> State[Any]:
    """The state that Prefect shows. A wait is no failure: its badge is green and says `Deferred`."""
    mailout = engine.store.mailout(mailout_id)
    ledger = mailout.ledger
    counts = f"{ledger.sent} sent, {ledger.failed} failed, {ledger.unknown} unknown, {ledger.pending} pending"
    if mailout.status is Status.COMPLETED and mailout.outcome is MailoutOutcome.FAILED:
        return Failed(message=f"Not everybody was reached: {counts}.", name="Failed")
    if mailout.status is Status.CANCELLED:
        return Completed(message=f"Cancelled: {counts}.", name="Cancelled by hand")
    if mailout.defer_reason is DeferReason.PAUSED and mailout.defer_note in STOPPED_IN_PREFECT:
        return Cancelled(message=f"The mailout is paused: {counts}. To go on: resume_mailout.")
    if mailout.status is not Status.COMPLETED:
        why = hidden(_why(mailout, engine.limits.timezone))
        return Completed(message=f"{why} {counts}.", name="Deferred")
    return Completed(message=counts)


def _why(mailout: Mailout, timezone: Any) -> str:
    if mailout.defer_reason is None and mailout.started_at is None and mailout.scheduled_at is not None:
        planned = datetime.fromtimestamp(mailout.scheduled_at, timezone)
        return f"Planned for {planned:%Y-%m-%d %H:%M %Z}; until then it can be cancelled."
    if mailout.defer_reason is None:
        return "Stopped; the queue goes on with it."
    if mailout.deferred_until is None:
        note = f" {mailout.defer_note}" if mailout.defer_note else ""
        return f"{mailout.defer_reason}: waits for a person.{note}"
    until = datetime.fromtimestamp(mailout.deferred_until, timezone)
    return f"{mailout.defer_reason}: until {until:%Y-%m-%d %H:%M %Z}."
