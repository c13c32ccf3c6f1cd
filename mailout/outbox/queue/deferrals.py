"""Whether a mailout has to wait. The rules are pure (`limits`, and below what needs a person); the store is
asked here."""

from __future__ import annotations

from dataclasses import dataclass

from mailout.base.settings import Settings
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.options import Ended, RunReport
from mailout.outbox.queue import limits as rules
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.limits import QUOTA_WINDOW, Defer, Limits
from mailout.outbox.queue.mailout import DeferReason, Mailout
from mailout.outbox.queue.port import Queue, QueueStore

ENOUGH_SENT = 100
"""Fewer say nothing: one bounce of ten is a tenth."""
TWICE_WITHIN = 7 * 86_400.0


@dataclass(frozen=True, slots=True, repr=False)
class Deferrals:
    """Whether a mailout may go on, and if not, why and until when."""

    store: QueueStore
    limits: Limits
    settings: Settings

    def why_not_start(self, mailout: Mailout) -> Defer | None:
        """What needs a person is said first: there may be time to look before the window opens."""
        return self._twice(mailout) or self._hold(mailout) or rules.why_not_now(self.limits, self.store.now())

    def why_it_ended(self, mailout: Mailout, report: RunReport) -> Defer | None:
        now = self.store.now()
        frees_at = None
        if report.limited == "quota":
            begun = outbox_rows.begun_since(self.store, now - QUOTA_WINDOW)
            frees_at = rules.quota_frees(begun, mailout.ledger.pending, now)
        wait = rules.why_it_ended(
            self.limits,
            report,
            now,
            pauses_in_a_row=mailout.pauses_in_a_row,
            quota_frees_at=frees_at,
        )
        return self._hold(mailout) if wait is None and report.ended is Ended.DEADLINE else wait

    def _twice(self, mailout: Mailout) -> Defer | None:
        """Asked at the start alone: while it is being sent, it is the other one that waits."""
        if not may_be_a_duplicate(mailout):
            return None
        since = self.store.now() - TWICE_WITHIN
        return duplicate(queue_rows.same_content(self.store, mailout.id, since))

    def _hold(self, mailout: Mailout) -> Defer | None:
        settings, store = self.settings, self.store
        if wait := bad_reputation(mailout, settings.max_bounce_rate, settings.max_complaint_rate):
            return wait
        if settings.require_test and needs_a_test(mailout):
            tested_at = queue_rows.last_test(store, content_hash=mailout.content_hash)
            return Defer(DeferReason.UNTESTED, None) if tested_at is None else None
        return None


def defer(store: Queue, id: str, wait: Defer) -> Mailout:
    """The one way in which anything puts a mailout off."""
    return store.defer(id, wait.reason, wait.until, wait.note)


# ── What holds a mailout until a person has looked ────────────────────────────────────────────────


def bad_reputation(mailout: Mailout, max_bounce_rate: float, max_complaint_rate: float) -> Defer | None:
    """Too many bounces or complaints. What a person has acknowledged is left out, sends and bounces alike."""
    known = mailout.acknowledged
    sent = mailout.ledger.sent - known.get("sent", 0)
    if mailout.is_test or mailout.is_rehearsal or sent < ENOUGH_SENT:
        return None
    for metric, most in (("bounced", max_bounce_rate), ("complained", max_complaint_rate)):
        n = mailout.metrics.get(metric, 0) - known.get(metric, 0)
        if n / sent > most:
            what = "bounced" if metric == "bounced" else "were reported as spam"
            note = f"{n:,} of {sent:,} {what} ({n / sent:.1%}; the line is {most:.1%})."
            return Defer(DeferReason.REPUTATION, None, note)
    return None


def may_be_a_duplicate(mailout: Mailout) -> bool:
    """Whether it is worth asking: a real one that has sent nothing and that no person has let pass."""
    return needs_a_test(mailout) and "duplicate_content" not in mailout.acknowledged


def needs_a_test(mailout: Mailout) -> bool:
    """One to people, with content, of which nothing was sent."""
    ledger = mailout.ledger
    return (
        not mailout.is_test
        and not mailout.is_rehearsal
        and mailout.content_hash is not None
        and ledger.sent + ledger.unknown == 0
    )


def duplicate(other: Mailout | None) -> Defer | None:
    """The same went out to the same list from another page or file."""
    if other is None:
        return None
    went_out = other.ledger.sent + other.ledger.unknown > 0
    said = f"It {'went out' if went_out else 'is being sent'} as {other.ref} (mailout {other.id})."
    return Defer(DeferReason.DUPLICATE_CONTENT, None, said)
