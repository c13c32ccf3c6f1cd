"""Whether a mailout has to wait: the rules are pure (`limits`, `holds`), the store is asked here."""

from __future__ import annotations

from dataclasses import dataclass

from mailout.delivery.options import Ended, RunReport
from mailout.queue import limits as rules
from mailout.queue.holds import (
    TWICE_WITHIN,
    bad_reputation,
    duplicate,
    may_be_a_duplicate,
    needs_a_test,
    untested,
)
from mailout.queue.limits import QUOTA_WINDOW, Defer, Limits
from mailout.queue.mailout import Mailout
from mailout.queue.port import Queue, QueueStore
from mailout.settings import Settings


@dataclass(frozen=True, slots=True, repr=False)
class Deferrals:
    """Whether a mailout may go on, and if not, why and until when."""

    store: QueueStore
    limits: Limits
    settings: Settings

    def why_not_start(self, mailout: Mailout) -> Defer | None:
        """What needs a person is said first: there may be time to look before the window opens."""
        return self._hold(mailout) or rules.why_not_now(self.limits, self.store.now())

    def why_it_ended(self, mailout: Mailout, report: RunReport) -> Defer | None:
        now = self.store.now()
        frees_at = None
        if report.limited == "quota":
            begun = self.store.begun_since(now - QUOTA_WINDOW)
            frees_at = rules.quota_frees(begun, mailout.ledger.pending, now)
        wait = rules.why_it_ended(
            self.limits,
            report,
            now,
            pauses_in_a_row=mailout.pauses_in_a_row,
            quota_frees_at=frees_at,
        )
        return self._hold(mailout) if wait is None and report.ended is Ended.DEADLINE else wait

    def _hold(self, mailout: Mailout) -> Defer | None:
        wait = bad_reputation(mailout, self.settings.max_bounce_rate, self.settings.max_complaint_rate)
        if wait is None and may_be_a_duplicate(mailout):
            wait = duplicate(self.store.same_content(mailout.id, self.store.now() - TWICE_WITHIN))
        if wait is None and self.settings.require_test and needs_a_test(mailout):
            wait = untested(self.store.last_test(content_hash=mailout.content_hash))
        return wait


def defer(store: Queue, id: str, wait: Defer) -> Mailout:
    """The one way in which anything puts a mailout off."""
    return store.defer(id, wait.reason, wait.until, wait.note)
