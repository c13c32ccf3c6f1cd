"""How far it is: a bar on a terminal, a line now and then elsewhere. Read from the store alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from cli.output import note, out
from mailout.app import wiring
from mailout.base.errors import NotFound, StoreUnavailable
from mailout.base.settings import Settings
from mailout.base.time_format import lasting
from mailout.outbox.delivery.protocol import Ledger

PROGRESS_POLL_SECONDS = 0.25
LINE_SECONDS = 5.0
WINDOW_SECONDS = 15.0
"""What the rate is measured over: it may have waited before, for Prefect or for its turn."""


@contextmanager
def showing(
    settings: Settings, mailout_id: str, *, first: str = "Preparing", quiet: bool = False
) -> Iterator[None]:
    """While the mailout is sent, show how far it is."""
    if quiet:
        yield
        return
    watch, ended = _Watch(first), threading.Event()
    watcher = threading.Thread(
        target=_look_on, args=(settings, mailout_id, watch, ended), name="progress", daemon=True
    )
    if not out.is_terminal:
        note(f"{first} …")
    with watch.bar if out.is_terminal else nullcontext():
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


def _look_on(settings: Settings, mailout_id: str, watch: _Watch, ended: threading.Event) -> None:
    store, is_last = wiring.open_store(settings), False
    try:
        while not is_last:
            is_last = ended.wait(PROGRESS_POLL_SECONDS)
            with suppress(NotFound, StoreUnavailable):  # not written down yet, or busy: look again
                mailout = store.mailout(mailout_id)
                if mailout.frozen_at is not None and mailout.started_at is not None:
                    watch.show(mailout.ledger)
    finally:
        store.close()


class _Watch:
    """A bar for a person who watches; for a log file, lines on stderr: stdout is for what came of it."""

    def __init__(self, first: str) -> None:
        self.bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[words]}"),
            TimeElapsedColumn(),
            console=out,
            transient=True,
            speed_estimate_period=WINDOW_SECONDS,
        )
        self._task = self.bar.add_task(first, total=None, words="")
        self._next_line = 0.0
        self._last_line = -1

    def show(self, ledger: Ledger) -> None:
        done, total = ledger.done, ledger.recipients
        self.bar.update(self._task, description="Sending", completed=done, total=total)
        words, pace, rate = f"{ledger.sent:,} of {total:,}", "", self.bar.tasks[0].speed
        if rate and done < total:
            pace = f"{rate:,.1f} a second, {lasting((total - done) / rate)} remaining"
        self.bar.update(self._task, words=", ".join(filter(None, (words, pace))))
        now = time.monotonic()
        if out.is_terminal or done == self._last_line or (now < self._next_line and done < total):
            return
        self._next_line, self._last_line = now + LINE_SECONDS, done
        note(f"Sending: {words}" + (f" ({pace})" if pace else ""))
