"""Notifications of a producer's SQLite queue: once, or (as `mailout up` does it) an hour at a time."""

from __future__ import annotations

import threading
from typing import Any

from prefect import State
from prefect.states import Completed

from flows.runs import mailout_flow
from mailout.app.engine import Engine
from tasks.single_mails import send_notifications

STOP = threading.Event()
"""Asked for by a signal: what is in hand is finished."""


@mailout_flow()
def dispatch_notifications(
    engine: Engine,
    db: str | None = None,
    seconds: float = 0,
    in_place: bool = False,
) -> State[Any]:
    """Send what a producer's queue of notifications asks for, and write into its rows what became of it.

    Args:
        db: The producer's SQLite file; else NOTIFY_DB.
        seconds: Go on for so long; 0: everything that is due now, once.
        in_place: A rehearsal (folder transport) marks the producer's own rows, instead of those of a copy.
    """
    return Completed(message=send_notifications(db, seconds, in_place, STOP).said())
