"""Signs of life of a run that a worker has started: `deployments/unresponsive-runs.yaml` listens for them.

Not Prefect's own heartbeats: it tells of no end by a name that does not change, and an automation on all its
events of flow runs would write to Prefect's database at every one of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast
from uuid import uuid4

from prefect.client.orchestration import SyncPrefectClient
from prefect.runtime import deployment, flow_run

from flows.orphans import end_with_up
from tasks.display import DISPLAY

P = ParamSpec("P")
R = TypeVar("R")

HEARTBEAT = "mailout.flow-run.heartbeat"
ENDED = "mailout.flow-run.ended"
HEARTBEAT_SECONDS = 30.0


def heartbeats(function: Callable[P, R]) -> Callable[P, R]:
    """For the function of a flow; for a generator, from its first step to its last."""
    if inspect.isgeneratorfunction(function):

        @wraps(function)
        def run_in_turns(*args: P.args, **kwargs: P.kwargs) -> Generator[Any, Any, Any]:
            with _beating():
                return (yield from function(*args, **kwargs))

        return cast("Callable[P, R]", run_in_turns)

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        end_with_up()
        try:
            with _beating():
                return function(*args, **kwargs)
        finally:
            DISPLAY.finish()

    return run


@contextmanager
def _beating() -> Iterator[None]:
    if not deployment.id:  # a command's own: whoever started it sees how it ends
        yield
        return
    id = str(flow_run.id)
    DISPLAY.repeat(("heartbeat", id), lambda client: _emit(client, HEARTBEAT, id), HEARTBEAT_SECONDS)
    try:
        yield
    finally:
        DISPLAY.end_repeat(("heartbeat", id))
        DISPLAY.show(("ended", id), lambda client: _emit(client, ENDED, id))


def _emit(client: SyncPrefectClient, event: str, run: str) -> None:
    """Over HTTP, answered: what `emit_event` sends is gone if the process ends soon."""
    body = {
        "id": str(uuid4()),
        "occurred": datetime.now(UTC).isoformat(),
        "event": event,
        "resource": {"prefect.resource.id": f"prefect.flow-run.{run}"},
    }
    client.request("POST", "/events", json=[body])
