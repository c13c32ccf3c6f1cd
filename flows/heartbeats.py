"""Signs of life of a run that a worker has started: `deployments/unresponsive-runs.yaml` listens for them.

Prefect's own heartbeats come from a thread that nobody waits for: those of a short run reach the server after
its end, and the automation then tries to mark a run that has long been completed. Here every one has been
answered before the run goes on to its end.
"""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from datetime import UTC, datetime
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast
from uuid import uuid4

import httpx
from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectException
from prefect.runtime import deployment, flow_run

from flows.orphans import end_with_up

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger("mailout.flows")

HEARTBEAT = "mailout.flow-run.heartbeat"
EVERY = 30.0
PATIENCE = 10.0  # with a server that does not answer


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
        with _beating():
            return function(*args, **kwargs)

    return run


@contextmanager
def _beating() -> Iterator[None]:
    if not deployment.id:  # a command's own: whoever started it sees how it ends
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=copy_context().run, args=(_beat, str(flow_run.id), ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(PATIENCE)


def _beat(run: str, ended: threading.Event) -> None:
    while True:
        try:
            _tell(run)
        except (httpx.HTTPError, PrefectException) as error:
            log.info("Prefect did not get the heartbeat: %s", error)
        if ended.wait(EVERY):
            return


def _tell(run: str) -> None:
    event = {
        "id": str(uuid4()),
        "occurred": datetime.now(UTC).isoformat(),
        "event": HEARTBEAT,
        "resource": {"prefect.resource.id": f"prefect.flow-run.{run}"},
    }
    with get_client(sync_client=True) as client:
        client._client.post("/events", json=[event]).raise_for_status()
