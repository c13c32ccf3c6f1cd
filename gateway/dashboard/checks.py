"""What `mailout doctor` asks, in the background: the parts may take seconds to answer, pages must not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mailout.insight.doctor.checks import Check, CheckGroup

CHECKS_CACHE_SECONDS = 60.0
"""SES answers one question a second: it is not asked more often."""
CHECKS_WAIT_SECONDS = 3.0
"""How long a page that shows them waits for the first answer."""


@dataclass(frozen=True, slots=True)
class CheckResults:
    """As the parts answered then."""

    at: float
    parts: Sequence[tuple[str, Sequence[Check]]]

    def of(self, *levels: str) -> Sequence[tuple[str, Check]]:
        return [(name, one) for name, checks in self.parts for one in checks if one.level in levels]


class Checks:
    """Known results are given at once; older ones are asked for again meanwhile."""

    def __init__(self, ask: Callable[[], Iterable[CheckGroup]], now: Callable[[], float]) -> None:
        self._ask = ask
        self._now = now
        self._lock = threading.Lock()
        self._running: threading.Event | None = None
        self._known: CheckResults | None = None

    def known(self, *, wait: float = 0.0) -> CheckResults | None:
        """None: nobody has asked yet, or the answers take longer than `wait` seconds."""
        with self._lock:
            fresh = self._known is not None and self._now() - self._known.at < CHECKS_CACHE_SECONDS
            if not fresh and self._running is None:
                self._running = threading.Event()
                threading.Thread(target=self._run, args=(self._running,), daemon=True).start()
            running, known = self._running, self._known
        if known is None and running is not None and wait:
            running.wait(wait)
            known = self._known
        return known

    def _run(self, done: threading.Event) -> None:
        try:
            parts = [(part.name, list(part.checks)) for part in self._ask()]
            self._known = CheckResults(self._now(), parts)
        finally:
            with self._lock:
                self._running = None
            done.set()
