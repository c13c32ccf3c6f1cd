"""Where calls run: `SEND_CONCURRENCY` threads, or (for tests on a virtual clock) the caller itself."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mailout.delivery.protocol import Claimed


@dataclass(frozen=True, slots=True)
class Group:
    """What goes out in one transport call, and when (on this machine's monotonic clock)."""

    rows: Sequence[Claimed]
    start: float | None  # None: at once


class Lanes(Protocol):
    """Calls in order, as many at a time as there are lanes."""

    def offer(self, groups: Sequence[Group]) -> None: ...
    def held(self) -> int:
        """Messages handed in and not yet begun."""
        ...

    def wait(self, low: int | None, timeout: float) -> None:
        """Until at most `low` messages are held (None: until a call has ended), or the time is up."""
        ...

    def take_back(self) -> Sequence[Group]:
        """What has not begun; it will not begin any more."""
        ...

    def join(self, timeout: float) -> bool:
        """Until no call is running; False when the time is up first."""
        ...

    def close(self) -> None: ...


class ThreadLanes:
    """Real threads. `call` never raises; if it did, `failure` would carry it to the sender."""

    def __init__(self, count: int, call: Callable[[Group], None]) -> None:
        self._call = call
        self._waiting: deque[Group] = deque()
        self._busy = 0
        self._ended = 0
        self._closed = False
        self._changed = threading.Condition()
        self.failure: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._run, name=f"lane-{index + 1}", daemon=True)
            for index in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if not self._waiting:
                    return
                group = self._waiting.popleft()
                self._busy += 1
            try:
                self._call(group)
            except BaseException as error:  # noqa: BLE001 (handed to the sender's own thread)
                self.failure = error
            finally:
                with self._changed:
                    self._busy -= 1
                    self._ended += 1
                    self._changed.notify_all()

    def offer(self, groups: Sequence[Group]) -> None:
        with self._changed:
            self._waiting.extend(groups)
            self._changed.notify_all()

    def held(self) -> int:
        with self._changed:
            return self._held()

    def wait(self, low: int | None, timeout: float) -> None:
        with self._changed:
            ended = self._ended
            self._changed.wait_for(
                lambda: (
                    self.failure is not None or (self._ended > ended if low is None else self._held() <= low)
                ),
                timeout,
            )
        if self.failure is not None:
            raise self.failure

    def _held(self) -> int:
        return sum(len(group.rows) for group in self._waiting)

    def take_back(self) -> Sequence[Group]:
        with self._changed:
            groups = list(self._waiting)
            self._waiting.clear()
            return groups

    def join(self, timeout: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._busy == 0 and not self._waiting, timeout)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(timeout=1.0)


class InlineLanes:
    """One lane that runs when the sender waits: with a virtual clock, the whole run is exact."""

    def __init__(self, call: Callable[[Group], None]) -> None:
        self._call = call
        self._waiting: deque[Group] = deque()

    def offer(self, groups: Sequence[Group]) -> None:
        self._waiting.extend(groups)

    def held(self) -> int:
        return sum(len(group.rows) for group in self._waiting)

    def wait(self, low: int | None, timeout: float) -> None:
        while self._waiting and (low is None or self.held() > low):
            self._call(self._waiting.popleft())
            if low is None:
                return

    def take_back(self) -> Sequence[Group]:
        groups = list(self._waiting)
        self._waiting.clear()
        return groups

    def join(self, timeout: float) -> bool:
        self.wait(0, timeout)
        return True

    def close(self) -> None:
        return None
