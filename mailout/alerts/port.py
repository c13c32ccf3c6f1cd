"""What alerts need of the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mailout.alerts.model import Known, Signs
from mailout.delivery.port import Outbox
from mailout.queue.port import Queue


class Alerts(Protocol):
    """Which alerts were sent, so that two workers, or the next minute, do not repeat one."""

    def alert_signs(self, scope: str) -> Signs:
        """What there is to see besides the mailouts that need a person."""
        ...

    def alerts_hold(self, keys: Sequence[str], seen_at: float) -> Sequence[Known]:
        """These hold, and no others, as was seen then; what is known of each.

        Whoever looked earlier and comes late neither ends nor revives what another has seen since.
        """
        ...

    def claim_alert(self, known: Known) -> bool:
        """Whether it is ours to send: nobody has tried since. Until it is sent, the try has failed."""
        ...

    def alert_sent(self, key: str) -> None: ...


class AlertStore(Alerts, Outbox, Queue, Protocol):
    """What alerts are decided from."""
