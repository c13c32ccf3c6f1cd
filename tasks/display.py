"""What Prefect's pages show of a run: names, artifacts, progress, heartbeats. Mail never waits for them.

One thread a process tells the server, with short time-outs. What it did not take is told again, the newest of
its kind alone, until the run is over; `finish` gives the last of it a few seconds. A letter costs the same
whether the server answers, hangs, is locked or away.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.exceptions import ObjectNotFound, PrefectException, PrefectHTTPStatusError
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

log = logging.getLogger("mailout.flows")

SERVER_SECONDS = 5.0
"""For one answer of the server."""
CLIENT_SECONDS = 60.0
"""How long a client is kept: to make one costs as much as ten requests."""
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.5, 5.0
FINISH_SECONDS = 10.0
"""At the end of a run, for what has not been shown yet."""

Act = Callable[[SyncPrefectClient], object]


@dataclass(slots=True)
class _Repeated:
    act: Act
    every: float  # seconds
    next_at: float
    begun: bool = False


class Display:
    """The queue, and its thread."""

    def __init__(self) -> None:
        self.server_answers = True  # the last time it was told something
        self._changed = threading.Condition()
        self._waiting: dict[Hashable, Act] = {}
        self._repeated: dict[Hashable, _Repeated] = {}
        self._thread: threading.Thread | None = None
        self._connection = ExitStack()
        self._client: SyncPrefectClient | None = None
        self._client_since = 0.0

    def show(self, what: Hashable, act: Act) -> None:
        """Soon. The newest takes the place of one of the same kind that still waits."""
        with self._changed:
            self._waiting[what] = act
            self._wake()

    def repeat(self, what: Hashable, act: Act, *, first: float, every: float) -> None:
        """After so many seconds, and then again until `end_repeat`. One that failed is not told again."""
        with self._changed:
            self._repeated[what] = _Repeated(act, every, time.monotonic() + first)
            self._wake()

    def end_repeat(self, what: Hashable) -> bool:
        """Whether it had begun."""
        with self._changed:
            ended = self._repeated.pop(what, None)
            return ended is not None and ended.begun

    def finish(self) -> bool:
        """Wait until everything is shown, for some seconds at most; whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, FINISH_SECONDS)

    def _wake(self) -> None:
        if self._thread is None:
            run = copy_context().run  # the settings: where the server is
            self._thread = threading.Thread(target=run, args=(self._run,), name="display", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _run(self) -> None:
        with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}):
            pause = 0.0
            while True:
                time.sleep(pause)
                with self._changed:
                    self._changed.wait_for(self._has_work, self._until_next())
                    repeated = self._due()
                    waiting = list(self._waiting.items())
                told = [self._tell(what, act) for what, act in repeated]  # one that fails keeps back none
                well = all(told)
                for what, act in waiting if well else ():
                    well = well and self._tell(what, act)
                    if well:
                        self._forget(what, act)
                pause = 0.0 if well else min(max(2 * pause, FIRST_RETRY_SECONDS), LAST_RETRY_SECONDS)

    def _has_work(self) -> bool:
        now = time.monotonic()
        return bool(self._waiting) or any(one.next_at <= now for one in self._repeated.values())

    def _until_next(self) -> float | None:
        next_at = min((one.next_at for one in self._repeated.values()), default=None)
        return None if next_at is None else max(0.0, next_at - time.monotonic())

    def _due(self) -> list[tuple[Hashable, Act]]:
        now = time.monotonic()
        due = [(what, one) for what, one in self._repeated.items() if one.next_at <= now]
        for _, one in due:
            one.next_at, one.begun = now + one.every, True
        return [(what, one.act) for what, one in due]

    def _forget(self, what: Hashable, act: Act) -> None:
        with self._changed:
            if self._waiting.get(what) is act:
                del self._waiting[what]
            self._changed.notify_all()

    def _tell(self, what: Hashable, act: Act) -> bool:
        """False: the server may take it later. What it refuses, or what is wrong in itself, is done with."""
        try:
            act(self._connected())
        except Exception as error:  # noqa: BLE001 (a picture of the sending, no part of it)
            away = _is_away(error)
            self._client_since = 0.0  # with another connection next time
            # "Locked" is an answer, and that the run was deleted.
            self.server_answers = hasattr(error, "response") or isinstance(error, ObjectNotFound)
            log.log(logging.INFO if away else logging.WARNING, "not shown by Prefect: %s: %s", what, error)
            return not away
        self.server_answers = True
        return True

    def _connected(self) -> SyncPrefectClient:
        if self._client is None or time.monotonic() - self._client_since > CLIENT_SECONDS:
            self._connection.close()
            # Never equal to another's settings: else it would be that run's client, and end with it.
            client = get_client(sync_client=True, httpx_settings={"timeout": httpx.Timeout(SERVER_SECONDS)})
            self._client, self._client_since = self._connection.enter_context(client), time.monotonic()
        return self._client


def _is_away(error: Exception) -> bool:
    if isinstance(error, httpx.HTTPStatusError | PrefectHTTPStatusError):
        return error.response.status_code >= 500 or error.response.status_code in (408, 429)
    is_answer = isinstance(error, ObjectNotFound)
    return not is_answer and isinstance(error, httpx.HTTPError | PrefectException | OSError)


DISPLAY = Display()
"""This process's own."""
