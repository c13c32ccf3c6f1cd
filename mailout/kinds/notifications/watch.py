"""Dispatch notifications as they come, for a long time, through outages of either database."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import closing

from mailout.base.clock import Clock
from mailout.base.errors import HomeUnwritable, SourceUnavailable, StoreUnavailable
from mailout.kinds.notifications.notifications import HELD_UP_PAUSE, NotificationWorker
from mailout.kinds.notifications.port import NotificationCounts
from mailout.outbox.delivery.store_retry import pause

log = logging.getLogger("mailout.notifications")

PRODUCER_IDLE_SECONDS = 1.0
AWAY_SECONDS = 5.0
COPY_SECONDS = 60.0
"""A rehearsal looks at a copy: so often at a new one."""


def dispatch(
    open_worker: Callable[[], NotificationWorker], clock: Clock, stop: threading.Event, seconds: float
) -> NotificationCounts:
    """Until the time is up or somebody asks to stop. A wrong setting ends it; an outage is logged once."""
    total, reported = NotificationCounts(), ""
    until = clock.monotonic() + seconds
    while not stop.is_set() and clock.monotonic() < until:
        try:
            with closing(open_worker()) as worker:
                worker.counts = total  # one count, however many workers it takes
                opened_at = clock.monotonic()
                while not stop.is_set() and clock.monotonic() < until:
                    picked = worker.round()
                    reported = ""
                    if worker.stopped:  # asked through the store: whoever runs us must not begin again
                        stop.set()
                    elif worker.held_up or not picked:
                        pause(clock, stop, HELD_UP_PAUSE if worker.held_up else PRODUCER_IDLE_SECONDS)
                        if worker.on_a_copy and clock.monotonic() - opened_at > COPY_SECONDS:
                            break
        except HomeUnwritable:
            raise
        except (SourceUnavailable, StoreUnavailable) as error:
            if str(error) != reported:
                log.warning("%s", error)
            reported = str(error)
            pause(clock, stop, AWAY_SECONDS)
    return total
