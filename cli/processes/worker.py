"""Prefect's worker, as `python -m prefect` starts it, that gives memory back.

Each run takes some megabytes of it for a moment. What is freed between two things that stay, the C library
keeps: a worker looks as if it leaked until it has had its busiest minute.
"""

from __future__ import annotations

import ctypes
import gc
import runpy
import threading
import time
from pathlib import Path

LOOK_SECONDS = 60.0
GROWTH = 1.02
"""Less is not worth looking through everything for what is free."""


def _resident_pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


def _give_back() -> None:
    trim = ctypes.CDLL(None).malloc_trim
    last = 0
    while True:
        time.sleep(LOOK_SECONDS)
        if _resident_pages() > GROWTH * last:
            gc.collect()
            trim(0)
            last = _resident_pages()


if __name__ == "__main__":
    if hasattr(ctypes.CDLL(None), "malloc_trim"):  # glibc's, which is Linux's
        threading.Thread(target=_give_back, name="give memory back", daemon=True).start()
    runpy.run_module("prefect", run_name="__main__", alter_sys=True)
