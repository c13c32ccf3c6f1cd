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


class Work(Protocol):
    """What a lane does with a group. Neither part raises; if one did, the sender would hear of it."""

    def prepare(self, group: Group) -> Callable[[], None] | None:
        """In turn, one at a time: wait for the slot; the call to make, or None if it must not be made."""
        ...


class Lanes(Protocol):
    """Calls in order, as many at a time as there are lanes."""

    def offer(self, groups: Sequence[Group]) -> None: ...
    def held(self) -> int:
        """Messages handed in and not yet begun."""
        ...

    def wait(self, low: int, timeout: float) -> None:
        """Until at most `low` messages are held, or the time is up."""
        ...

    def look(self) -> None:
        """The sender looks at the results now: a call that ends from here on is news."""
        ...

    def wait_for_news(self, timeout: float) -> None:
        """Until a call has ended since the sender last looked, or the time is up."""
        ...

    def take_back(self) -> Sequence[Group]:
        """What has not begun; it will not begin any more."""
        ...

    def join(self, timeout: float) -> bool:
        """Until no call is running; False when the time is up first."""
        ...

    def close(self) -> None: ...


class ThreadLanes:
    """Real threads. One of them at a time waits for the next slot, so that groups start in their order."""

    def __init__(self, count: int, work: Work) -> None:
        self._work = work
        self._turn = threading.Lock()
        self._waiting: deque[Group] = deque()
        self._busy = 0
        self._ended = 0
        self._seen = 0  # of them
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
            call: Callable[[], None] | None = None
            with self._turn:
                with self._changed:
                    self._changed.wait_for(lambda: self._waiting or self._closed)
                    if not self._waiting:
                        return
                    group = self._waiting.popleft()
                    self._busy += 1
                try:
                    call = self._work.prepare(group)
                except BaseException as error:  # noqa: BLE001 (handed to the sender's own thread)
                    self.failure = error
            try:
                if call is not None:
                    call()
            except BaseException as error:  # noqa: BLE001 (likewise)
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

    def wait(self, low: int, timeout: float) -> None:
        self._wait_for(lambda: self._held() <= low, timeout)

    def look(self) -> None:
        with self._changed:
            self._seen = self._ended

    def wait_for_news(self, timeout: float) -> None:
        self._wait_for(lambda: self._ended > self._seen, timeout)

    def _wait_for(self, wanted: Callable[[], bool], timeout: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.failure is not None or wanted(), timeout)
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

    def __init__(self, work: Work) -> None:
        self._work = work
        self._waiting: deque[Group] = deque()

    def offer(self, groups: Sequence[Group]) -> None:
        self._waiting.extend(groups)

    def held(self) -> int:
        return sum(len(group.rows) for group in self._waiting)

    def wait(self, low: int, timeout: float) -> None:
        while self._waiting and self.held() > low:
            self._run_next()

    def look(self) -> None:
        return None  # nothing ends unseen in the sender's own thread

    def wait_for_news(self, timeout: float) -> None:
        if self._waiting:
            self._run_next()

    def _run_next(self) -> None:
        call = self._work.prepare(self._waiting.popleft())
        if call is not None:
            call()

    def take_back(self) -> Sequence[Group]:
        groups = list(self._waiting)
        self._waiting.clear()
        return groups

    def join(self, timeout: float) -> bool:
        self.wait(0, timeout)
        return True

    def close(self) -> None:
        return None
