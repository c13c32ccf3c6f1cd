"""A curve from samples."""

from __future__ import annotations

from collections.abc import Sequence


def spread(moments: Sequence[float], sent: int) -> Sequence[tuple[float, int]]:
    """What samples of the messages say of all: the nth of k left when about n/k of all had."""
    ordered = sorted(moments)
    return [(at, round(sent * n / len(ordered))) for n, at in enumerate(ordered, start=1)]
