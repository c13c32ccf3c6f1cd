"""Ctrl-C, SIGTERM and a terminal that is closed: the first lets what is in hand be finished."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """By a signal, whose number becomes the exit code."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def handling(handler: Callable[[int, object], None]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def stopping(on_stop: Callable[[], object] = lambda: None) -> Iterator[threading.Event]:
    """Set by the first signal; a second one does not wait any more."""
    stop = threading.Event()

    def handler(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        on_stop()

    with handling(handler):
        yield stop
