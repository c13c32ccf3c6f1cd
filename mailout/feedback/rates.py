"""What came back of a mailout, as its page shows it."""

from __future__ import annotations

from typing import NamedTuple

from mailout.queue.mailout import Mailout


class Rates(NamedTuple):
    """Counts and shares of what was sent."""

    delivered_count: int
    bounce_rate: float
    unsub_rate: float


def rates(mailout: Mailout) -> Rates:
    """Of a mailout's counts. Nothing sent: nothing to divide by."""
    sent, counts = mailout.ledger.sent, mailout.metrics

    def share(name: str) -> float:
        return round(counts.get(name, 0) / sent, 4) if sent else 0.0

    return Rates(counts.get("delivered", 0), share("bounced"), share("unsubscribed"))
