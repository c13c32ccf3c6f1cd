"""The status of a subscriber: `bounced > unsubscribed > active`, and equal or higher wins."""

from __future__ import annotations

from collections.abc import Mapping

PRIORITY: Mapping[str, int] = {"active": 1, "unsubscribed": 2, "bounced": 3}


def stronger(current: str, incoming: str) -> str:
    """Which one stays. Any order of the same events ends in the same state."""
    return incoming if PRIORITY[incoming] >= PRIORITY[current] else current
