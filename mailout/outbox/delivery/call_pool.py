"""Where calls run: in the sender itself (for tests on a virtual clock), or in threads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Claimed


@dataclass(frozen=True, slots=True)
class Group:
    """What goes out in one transport call, and when (on this machine's monotonic clock)."""

    rows: Sequence[Claimed]
    start: float | None  # None: at once


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """Mails that are put together, and the messages they are of."""

    mails: Sequence[Mail]
    rows: Sequence[Claimed]


class Work(Protocol):
    """What a thread does with a group. No part raises; if one did, the sender would hear of it."""

    def calls_allowed(self) -> int:
        """In flight at once, for now: at least one."""

    def prepare(self, rows: Sequence[Claimed]) -> PreparedCall | None:
        """Put the mails together; None: none of them is to be sent."""

    def wait_for_slot(self, prepared: PreparedCall, start: float | None) -> Callable[[], None] | None:
        """In turn, one at a time. The call to make; None: this slot cannot be used any more."""


class Waiting:
    """Messages in their order and the slots that are reserved for them, each in a line of its own.

    A slot that is lost moves the messages to the next one: they keep their order, and those at the end have
    no slot. They stay here until more slots come or the sender takes them back.
    """

    def __init__(self) -> None:
        self._rows: deque[Sequence[Claimed]] = deque()
        self._starts: deque[float | None] = deque()
        self._messages = 0  # in all rows

    def add(self, groups: Sequence[Group]) -> None:
        self._rows.extend(group.rows for group in groups)
        self._starts.extend(group.start for group in groups)
        self._messages += sum(len(group.rows) for group in groups)

    def __bool__(self) -> bool:
        return bool(self._rows and self._starts)

    def next(self) -> Group:
        rows = self._rows.popleft()
        self._messages -= len(rows)
        return Group(rows, self._starts.popleft())

    def next_start(self, rows: Sequence[Claimed]) -> tuple[bool, float | None]:
        """Another slot for these, or (False) none: then they wait here, before all others."""
        if self._starts:
            return True, self._starts.popleft()
        self._rows.appendleft(rows)
        self._messages += len(rows)
        return False, None

    def held(self) -> int:
        """Messages that have a slot."""
        slotless = islice(reversed(self._rows), len(self._rows) - len(self._starts))
        return self._messages - sum(len(rows) for rows in slotless)

    def take_back(self) -> Sequence[Claimed]:
        rows = [row for group in self._rows for row in group]
        self._rows.clear()
        self._starts.clear()
        self._messages = 0
        return rows

    def take_slotless(self) -> Sequence[Claimed]:
        groups = [self._rows.pop() for _ in range(len(self._rows) - len(self._starts))]
        rows = [row for group in reversed(groups) for row in group]
        self._messages -= len(rows)
        return rows


class CallPool:
    """Calls in order, each in the sender's own thread while it waits: on a virtual clock, a run is exact."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._waiting = Waiting()
        self._lock = threading.Lock()

    def offer(self, groups: Sequence[Group]) -> None:
        with self._lock:
            self._waiting.add(groups)

    def held(self) -> int:
        """Messages handed in that have a slot and are not yet begun."""
        with self._lock:
            return self._waiting.held()

    def wait(self, low: int, timeout: float) -> None:
        """Until at most `low` messages are held, or the time is up."""
        while self._waiting and self.held() > low:
            self._run_next()

    def look(self) -> None:
        """The sender looks at the results now: a call that ends from here on is news."""

    def wait_for_news(self, timeout: float) -> None:
        """Until a call has ended since the sender last looked, or the time is up."""
        if self._waiting:
            self._run_next()

    def take_back(self) -> Sequence[Claimed]:
        """What has not begun; it will not begin any more."""
        with self._lock:
            return self._waiting.take_back()

    def take_slotless(self) -> Sequence[Claimed]:
        """What has not begun and lost its slot."""
        with self._lock:
            return self._waiting.take_slotless()

    def join(self, timeout: float) -> bool:
        """Until no call is running; False when the time is up first."""
        self.wait(0, timeout)
        return True

    def close(self) -> None:
        """No call begins any more."""

    def _run_next(self) -> None:
        if call := self._prepare(self._waiting.next()):
            call()

    def _prepare(self, group: Group) -> Callable[[], None] | None:
        """The call to make, at the first slot that is not lost."""
        prepared = self._work.prepare(group.rows)
        has_slot, start = True, group.start
        while prepared is not None and has_slot:
            call = self._work.wait_for_slot(prepared, start)
            if call is not None:
                return call
            with self._lock:
                has_slot, start = self._waiting.next_start(prepared.rows)
                self._tell_sender()
        return None

    def _tell_sender(self) -> None:
        """With the lock held: something has happened that it may wait for."""


class ThreadCallPool(CallPool):
    """Real threads, as many as were needed so far. One at a time waits for a slot: groups start in order."""

    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self._turn = threading.Lock()
        self._busy = 0
        self._ended = 0
        self._seen = 0  # of them
        self._closed = False
        self._offered = threading.Condition(self._lock)  # what the threads wait for
        self._awaited: Callable[[], bool] | None = None  # what the sender waits for: not woken up for less
        self._happened = threading.Condition(self._lock)
        self.failure: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._start_thread()

    def _start_thread(self) -> None:
        name = f"call-{len(self._threads) + 1}"
        self._threads.append(threading.Thread(target=self._run, name=name, daemon=True))
        self._threads[-1].start()

    def _run(self) -> None:
        while True:
            call: Callable[[], None] | None = None
            with self._turn:
                with self._lock:
                    self._offered.wait_for(self._may_begin)
                    if not self._waiting:
                        return
                    group = self._waiting.next()
                    self._busy += 1
                    if self._busy == len(self._threads) < self._work.calls_allowed():
                        self._start_thread()
                    self._tell_sender()
                try:
                    call = self._prepare(group)
                except BaseException as error:  # noqa: BLE001 (handed to the sender's own thread)
                    self.failure = error
            try:
                if call is not None:
                    call()
            except BaseException as error:  # noqa: BLE001 (likewise)
                self.failure = error
            finally:
                with self._lock:
                    self._busy -= 1
                    self._ended += 1
                    self._offered.notify()
                    self._tell_sender()

    def _may_begin(self) -> bool:
        return self._closed or (bool(self._waiting) and self._busy < self._work.calls_allowed())

    def _tell_sender(self) -> None:
        if self._awaited is not None and self._awaited():
            self._happened.notify()

    def offer(self, groups: Sequence[Group]) -> None:
        with self._lock:
            self._waiting.add(groups)
            self._offered.notify()  # one: the others wait for their turn

    def wait(self, low: int, timeout: float) -> None:
        self._wait_for(lambda: self._waiting.held() <= low, timeout)

    def look(self) -> None:
        with self._lock:
            self._seen = self._ended

    def wait_for_news(self, timeout: float) -> None:
        self._wait_for(lambda: self._ended > self._seen, timeout)

    def _wait_for(self, wanted: Callable[[], bool], timeout: float) -> None:
        self._wait(lambda: self.failure is not None or wanted(), timeout)
        if self.failure is not None:
            raise self.failure

    def _wait(self, awaited: Callable[[], bool], timeout: float) -> bool:
        with self._lock:
            self._awaited = awaited
            met = self._happened.wait_for(awaited, timeout)
            self._awaited = None
        return met

    def join(self, timeout: float) -> bool:
        return self._wait(lambda: self._busy == 0 and not self._waiting, timeout)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._offered.notify_all()
        for thread in self._threads:
            thread.join(timeout=1.0)
