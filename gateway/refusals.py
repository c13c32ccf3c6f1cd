"""The log of what the gateway refuses: a line each, and no more of them than a disk and a reader can take."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

log = logging.getLogger("mailout.gateway")

REFUSALS_WINDOW_SECONDS = 60.0
LINES_PER_MINUTE = 60
"""Lines of requests that were refused, a minute: a scanner makes thousands."""


@dataclass
class _RefusalWindow:
    ends: float
    lines: int = 0
    left_out: int = 0


class RefusalLog:
    """What is left out of one minute is counted in the next line of its kind."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._minutes: dict[str, _RefusalWindow] = {}

    def request(self, method: str, path: str, code: int, why: str) -> None:
        level = logging.ERROR if code >= 500 else logging.WARNING
        self._write(
            "requests", LINES_PER_MINUTE, f"{method} {shown(path)} refused ({code}): {shown(why, 500)}", level
        )

    def wrong_token(self, site: str, path: str) -> None:
        self._write("wrong tokens", 1, f"A wrong token or none, from {site}, for {shown(path)}")

    def handshake(self, line: str) -> None:
        self._write("handshakes", 1, line)

    def connection(self, site: str, why: str) -> None:
        self._write(why, 1, f"Connection from {site} closed: {why}")

    def _write(self, kind: str, most: int, line: str, level: int = logging.WARNING) -> None:
        now = self._monotonic()
        minute = self._minutes.get(kind)
        if minute is None or now >= minute.ends:
            more = f" ({minute.left_out} more like it before)" if minute and minute.left_out else ""
            minute = self._minutes[kind] = _RefusalWindow(now + REFUSALS_WINDOW_SECONDS)
            line += more
        if minute.lines < most:
            minute.lines += 1
            log.log(level, "%s", line)
        else:
            minute.left_out += 1


def shown(text: str, most: int = 200) -> str:
    """A stranger chose it, or words in it: nothing in it may look like a line of ours."""
    short = text if len(text) <= most else f"{text[:most]}…"
    return short if short.isprintable() else ascii(short)
