"""A run ends with the `mailout up` whose worker has started it, also when both were killed.

Prefect's worker starts each run in a session of its own, so nobody who ends the worker ends the run. While
`mailout up` runs, it holds a lock on a file: the run sees for itself whether anybody still does.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import threading
import time
from pathlib import Path

log = logging.getLogger("mailout.flows")

LOCK = "UP_LOCK"
"""The variable that names the file; `mailout up` sets it for its workers."""
LOOK_EVERY, PATIENCE = 2.0, 5.0


def end_with_up() -> None:
    if lock := os.environ.get(LOCK):
        threading.Thread(target=_watch, args=(Path(lock),), daemon=True).start()


def _watch(lock: Path) -> None:
    """Asked first, as a worker would: it lets its mailouts go, and another run continues them."""
    while is_up(lock):
        time.sleep(LOOK_EVERY)
    log.warning("`mailout up` has ended: this run ends, too.")
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE)
    os.kill(os.getpid(), signal.SIGKILL)


def is_up(lock: Path) -> bool:
    """Whether somebody holds it."""
    try:
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # with its folder it has gone, too
        return False
    return False
