"""Looks at what flows would find to do, so that they need not start every minute to find nothing.

Each look has a thread of its own: one that waits for Notion holds up no other. What is found is sent to
Prefect as an event, whose trigger in `prefect.yaml` starts the flow. The schedules find the same, later; only
single mails have none.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mailout.base.clock import Clock
from mailout.base.errors import MailoutError

log = logging.getLogger("mailout.gateway")

SAME_EVENT_SECONDS = 5.0
"""Seconds between two events of one name: a flow that has started sees what came since."""
FIRST_REPEAT_SECONDS, LAST_REPEAT_SECONDS = 30.0, 300.0
"""A run may die before it has begun, so its event is sent again; ever more rarely, for whatever stays."""
FIRST_LOOK_SECONDS = 5.0
STOP_SECONDS = 2.0

Emit = Callable[[str, Mapping[str, object]], bool]
"""Sends an event with a payload to Prefect; whether it has been taken."""

Found = Mapping[str, float]
"""What there is to do, by a key; and how many seconds it may wait before somebody is woken for it."""


@dataclass(frozen=True, slots=True)
class Look:
    """What is looked at, how often, and which event says that there is something."""

    name: str
    event: str
    every: float  # seconds; 0: `find` itself waits
    find: Callable[[], Found]


@dataclass(slots=True)
class _Known:
    since: float
    emitted: int = 0  # how often
    next_at: float = 0.0


@dataclass(slots=True)
class Attention:
    """Of one look: what is known, and whether an event is due. Pure: the time is handed in."""

    _known: dict[str, _Known] = field(default_factory=dict)

    def due(self, found: Found, now: float) -> list[str]:
        """What no event was sent for, or not for a while. What is gone is forgotten."""
        self._known = {key: self._known.get(key) or _Known(now) for key in found}
        return [
            key for key, one in self._known.items() if now >= one.next_at and now - one.since >= found[key]
        ]

    def mark_emitted(self, now: float) -> None:
        """Whoever was woken finds all of it."""
        for one in self._known.values():
            one.next_at = now + min(FIRST_REPEAT_SECONDS * 2**one.emitted, LAST_REPEAT_SECONDS)
            one.emitted += 1


class Watch:
    """`start` begins to look, `stop` ends it."""

    def __init__(self, looks: Sequence[Look], clock: Clock) -> None:
        self.looks = looks
        self._clock = clock
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._last: dict[str, float] = {}  # event → when it was last sent
        self._threads: list[threading.Thread] = []

    def start(self, emit: Emit) -> None:
        for look in self.looks:
            thread = threading.Thread(
                target=self._keep_looking, args=(look, emit), name=f"watch-{look.name}", daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """One that waits for an answer ends with the process: what it has not stored is asked for again."""
        self._ended.set()
        for thread in self._threads:
            thread.join(STOP_SECONDS / max(1, len(self._threads)))

    def _keep_looking(self, look: Look, emit: Emit) -> None:
        attention, pause = Attention(), min(look.every, FIRST_LOOK_SECONDS)
        while not self._ended.wait(pause):
            try:
                self.once(look, attention, emit)
                pause = look.every
            except Exception as error:
                unforeseen = not isinstance(error, MailoutError)
                log.warning("%s could not be looked at: %s", look.name, error, exc_info=unforeseen)
                pause = max(look.every, FIRST_REPEAT_SECONDS)

    def once(self, look: Look, attention: Attention, emit: Emit) -> bool:
        """Look, and send the event if there is something; whether it was taken."""
        found = look.find()
        now = self._clock.monotonic()
        with self._lock:
            due = attention.due(found, now)
            if not due or now < self._last.get(look.event, -SAME_EVENT_SECONDS) + SAME_EVENT_SECONDS:
                return False
            self._last[look.event] = now
        if not emit(look.event, {"look": look.name, "waiting": len(found)}):
            return False  # not taken: nothing to wait for before it is sent again
        attention.mark_emitted(now)
        log.info("%s: %d to do, event %s is sent to Prefect.", look.name, len(due), look.event)
        return True
