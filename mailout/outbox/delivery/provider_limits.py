"""What the provider allows now: its quota and rate, asked for every few minutes."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from mailout.base.clock import Clock
from mailout.base.errors import MailoutError, ProviderUnreachable
from mailout.outbox.delivery.port import Allowance, Outbox, Transport

log = logging.getLogger("mailout.delivery")

ASK_PROVIDER_SECONDS = 180.0


@dataclass(repr=False)
class ProviderLimits:
    """Keeps the quota in the store, where every sender counts against it."""

    store: Outbox
    transport: Transport
    clock: Clock
    _allowance: Allowance | None = field(default=None, init=False)
    _asked_at: float | None = field(default=None, init=False)

    def ask(self, *, must_reach: bool = False) -> Allowance | None:
        """Without an answer the last one holds. `must_reach`: without a connection it raises."""
        now = self.clock.monotonic()
        if self._asked_at is None or now - self._asked_at >= ASK_PROVIDER_SECONDS:
            asked_at = self.store.now()  # before the question: what is sent meanwhile must count
            try:
                self._allowance = self.transport.allowance()
            except MailoutError as error:
                if must_reach and isinstance(error, ProviderUnreachable):
                    raise
                if not must_reach:  # else it is asked again, and said then
                    log.warning("the provider does not tell its quota: %s", error)
            else:
                self._asked_at = now
                if self._allowance is not None:
                    available, most = self._allowance.available, self._allowance.most
                    self.store.set_quota(self.transport.scope, available, asked_at, most=most)
        return self._allowance

    def rate(self, own: float) -> float:
        """Messages a second that may be sent, by our own setting and the last answer; 0: no limit."""
        rates = [own, (self._allowance.max_rate if self._allowance else None) or 0.0]
        return min((rate for rate in rates if rate), default=0.0)
