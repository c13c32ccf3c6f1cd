"""How far it is: a bar on a terminal, a line now and then elsewhere. Read from the store alone."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from cli.output import note, out
from mailout.app import wiring
from mailout.base.clock import SystemClock
from mailout.base.errors import NotFound, StoreUnavailable
from mailout.base.settings import Settings
from mailout.base.time_format import lasting
from mailout.outbox.delivery.protocol import Ledger
from mailout.store import Store

PROGRESS_POLL_SECONDS = 0.25
LINE_SECONDS = 5.0
WINDOW_SECONDS = 15.0
LEARNING_SECONDS = 2.0
"""A rate is not worth showing before."""


@contextmanager
def showing(
    settings: Settings, mailout_id: str, *, first: str = "Preparing", quiet: bool = False
) -> Iterator[None]:
    """While the mailout is sent, show how far it is."""
    if quiet:
        yield
        return
    watch = _Bar(first) if out.is_terminal else _Lines(first)
    ended = threading.Event()
    watcher = threading.Thread(
        target=_look_on, args=(settings, mailout_id, watch, ended), name="progress", daemon=True
    )
    with watch:
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


def _look_on(settings: Settings, mailout_id: str, watch: _Bar | _Lines, ended: threading.Event) -> None:
    store = wiring.open_store(settings)
    pace = SpeedMeter()
    try:
        while not ended.wait(PROGRESS_POLL_SECONDS):
            _look(store, mailout_id, watch, pace)
        _look(store, mailout_id, watch, pace)
    finally:
        store.close()


def _look(store: Store, mailout_id: str, watch: _Bar | _Lines, pace: SpeedMeter) -> None:
    try:
        mailout = store.mailout(mailout_id)
    except (NotFound, StoreUnavailable):  # not written down yet, or busy: look again
        return
    if mailout.frozen_at is not None and mailout.started_at is not None:
        pace.seen(store.now(), mailout.ledger)
        watch.show(mailout.ledger, pace)


class SpeedMeter:
    """Messages a second, lately: it may have waited before, for Prefect or for its turn."""

    def __init__(self) -> None:
        self._lately: deque[tuple[float, int]] = deque()
        self.rate: float | None = None

    def seen(self, now: float, ledger: Ledger) -> None:
        lately = self._lately
        if len(lately) == 1 and lately[0][1] == ledger.done:
            lately.clear()  # nothing has moved yet
        lately.append((now, ledger.done))
        while now - lately[0][0] > WINDOW_SECONDS:
            lately.popleft()
        span = now - lately[0][0]
        self.rate = (lately[-1][1] - lately[0][1]) / span if span >= LEARNING_SECONDS else None

    def words(self, ledger: Ledger) -> str:
        remaining = ledger.recipients - ledger.done
        if not remaining or not self.rate:
            return ""
        return f"{self.rate:,.1f} a second, {lasting(remaining / self.rate)} remaining"


class _Bar:
    """For a person who watches."""

    def __init__(self, first: str) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[words]}"),
            TimeElapsedColumn(),
            console=out,
            transient=True,
        )
        self._task: TaskID = self._progress.add_task(first, total=None, words="")

    def __enter__(self) -> None:
        self._progress.start()

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, ledger: Ledger, pace: SpeedMeter) -> None:
        count = f"{ledger.sent:,} of {ledger.recipients:,}"
        words = ", ".join(filter(None, (count, pace.words(ledger))))
        self._progress.update(
            self._task, description="Sending", completed=ledger.done, total=ledger.recipients, words=words
        )


class _Lines:
    """For a log file: on stderr, since stdout is for what came of it."""

    def __init__(self, first: str) -> None:
        self._first = first
        self._next = 0.0
        self._last = -1

    def __enter__(self) -> None:
        note(f"{self._first} …")

    def __exit__(self, *_: object) -> None:
        sys.stderr.flush()

    def show(self, ledger: Ledger, pace: SpeedMeter) -> None:
        now = SystemClock().monotonic()
        if ledger.done == self._last or (now < self._next and ledger.done < ledger.recipients):
            return
        self._next, self._last = now + LINE_SECONDS, ledger.done
        words = pace.words(ledger)
        note(f"Sending: {ledger.sent:,} of {ledger.recipients:,}" + (f" ({words})" if words else ""))
