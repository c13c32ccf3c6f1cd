"""When an alert is sent: once while it lasts, again each day for a week, and sooner if the mail failed."""

from __future__ import annotations

from mailout.alerts.model import Alert, Known

REMIND_EVERY = 86_400.0
REMIND_FOR = 7 * 86_400.0
"""Whoever has not acted after a week has decided."""
RETRY_AFTER = (60.0, 300.0, 1800.0, 3600.0)
"""After a mail that could not be sent; the last one again and again, so at most one an hour."""


def is_due(alert: Alert, known: Known, now: float) -> bool:
    if known.failed and known.tried_at is not None:
        return now >= known.tried_at + RETRY_AFTER[min(known.failed, len(RETRY_AFTER)) - 1]
    if known.told_at is not None:
        old = now - known.since >= REMIND_FOR
        return alert.remind and not old and now >= known.told_at + REMIND_EVERY
    return now >= known.since + alert.grace
