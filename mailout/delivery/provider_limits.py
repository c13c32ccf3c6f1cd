"""What the provider allows now: its quota and rate, asked for every few minutes."""

from __future__ import annotations

import logging

from mailout.clock import Clock
from mailout.delivery.port import Allowance, Outbox, Transport
from mailout.errors import MailoutError

log = logging.getLogger("mailout.delivery")

ASK_EVERY = 180.0


class ProviderLimits:
    """Keeps the quota in the store, where every sender counts against it."""

    def __init__(self, store: Outbox, transport: Transport, clock: Clock) -> None:
        self._store = store
        self._transport = transport
        self._clock = clock
        self._allowance: Allowance | None = None
        self._asked_at: float | None = None

    def ask(self) -> Allowance | None:
        """Without an answer the last one holds."""
        now = self._clock.monotonic()
        if self._asked_at is None or now - self._asked_at >= ASK_EVERY:
            asked_at = self._store.now()  # before the question: what leaves meanwhile must not be lost
            try:
                self._allowance = self._transport.allowance()
            except MailoutError as error:
                log.warning("the provider does not tell its quota: %s", error)
            else:
                self._asked_at = now
                if self._allowance is not None:
                    left, most = self._allowance.available, self._allowance.most
                    self._store.set_quota(self._transport.scope, left, asked_at, most=most)
        return self._allowance

    def rate(self, own: float) -> float:
        """Messages a second that may leave, by our own setting and the last answer; 0: no limit."""
        rates = [own, (self._allowance.max_rate if self._allowance else None) or 0.0]
        return min((rate for rate in rates if rate), default=0.0)
