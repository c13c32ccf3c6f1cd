"""Files that Notion hosts, fetched before their address expires, and the pictures of videos. No redirect is
followed: an answer cannot lead to where its author may not look."""

from __future__ import annotations

import httpx

from mailout.base.clock import Clock
from mailout.base.errors import SourceUnavailable
from mailout.base.retries import retried

MAX_DOWNLOAD_BYTES = 50 * 1024 * 1024
DOWNLOAD_TIMEOUT = httpx.Timeout(30.0, connect=10.0)
DOWNLOAD_SECONDS = 300.0
"""Seconds for one file: a trickle is no download."""
DOWNLOAD_RETRY_SECONDS = (1.0, 3.0)


def download(url: str, *, clock: Clock, max_bytes: int = MAX_DOWNLOAD_BYTES) -> bytes:
    """The bytes at an address; OSError, with a reason that a person understands, if they cannot be had, and
    SourceUnavailable if it may pass: Notion gives a file another address each time its page is read."""
    try:
        return retried(lambda: _fetch(url, clock, max_bytes), _pause_after, clock)
    except httpx.HTTPError as error:
        raise SourceUnavailable(f"no answer ({str(error) or type(error).__name__})") from error
    except _TryAgain as answer:
        raise SourceUnavailable(f"the file's host answered {answer}") from answer


class _TryAgain(Exception):
    """An answer that may pass."""


def _pause_after(error: Exception, attempts: int) -> float | None:
    may_pass = isinstance(error, httpx.HTTPError | _TryAgain)
    return (
        DOWNLOAD_RETRY_SECONDS[attempts - 1] if may_pass and attempts <= len(DOWNLOAD_RETRY_SECONDS) else None
    )


def _fetch(url: str, clock: Clock, max_bytes: int) -> bytes:
    until = clock.monotonic() + DOWNLOAD_SECONDS
    with httpx.stream("GET", url, timeout=DOWNLOAD_TIMEOUT) as answer:
        if answer.status_code >= 500 or answer.status_code == 429:
            raise _TryAgain(str(answer.status_code))
        if answer.status_code == 403:
            raise SourceUnavailable("the file's host answered 403")  # its address has expired meanwhile
        if answer.status_code != 200:
            raise OSError(f"the file's host answered {answer.status_code}")
        data = bytearray()
        for piece in answer.iter_bytes():
            data += piece
            if len(data) > max_bytes:
                raise OSError(f"it is larger than {max_bytes // 2**20} MB")
            if clock.monotonic() > until:
                raise OSError(f"it did not arrive within {DOWNLOAD_SECONDS:.0f} seconds")
        return bytes(data)
