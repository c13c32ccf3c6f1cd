"""Whether one more sender would help with a mailout that others are sending already."""

from __future__ import annotations

WATCH_SECONDS = 5.0
"""So long the others are watched to see how fast they are."""
FULL = 0.9
"""Of the rate: whoever comes so near to it leaves no room."""
WORTH_SECONDS = 20.0
"""What ends sooner than that by itself is left alone: a sender that joins has to begin first."""


def would_help(speed: float, rate: float, pending: int) -> bool:
    """`speed`: attempts that all together begin a second; `rate` 0: no limit.

    Where none begins, whoever sends it waits for a retry, or has died: neither leaves anything to share.
    """
    has_room = not rate or speed < FULL * rate
    return has_room and 0 < speed * WORTH_SECONDS < pending
