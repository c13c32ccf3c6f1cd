"""What the page of a mailout says of it: read from the queue alone, so that it can be updated at any time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, tzinfo
from enum import StrEnum

from mailout.insight.page_status import writer_notes
from mailout.insight.reporting.phrases import reported
from mailout.outbox.queue.mailout import DeferReason, Mailout, MailoutOutcome, Status


class PageStatus(StrEnum):
    """What a page's status can be; an adapter knows what a workspace calls them."""

    DRAFT = "draft"  # being written; a test run returns to it
    READY = "ready"  # asks to be sent
    SENDING = "sending"  # its content is frozen
    SEND = "send"  # done
    FAILED = "failed"  # done, not for everybody; or stopped before it began


@dataclass(frozen=True, slots=True, kw_only=True)
class PageState:
    """None: as it is."""

    status: PageStatus
    is_test: bool = False
    is_rehearsal: bool = False
    shown_before: bool = False  # the page has been told, or was to be
    awaits_test: bool = False  # a page that asks for a test keeps its status until there is one
    note: str | None = None  # a line for whoever reads the page
    sent_at: float | None = None
    sent_count: int | None = None
    failed_count: int | None = None
    delivered_count: int | None = None
    bounce_rate: float | None = None
    unsub_rate: float | None = None


def page_state(
    mailout: Mailout, letter: str | None = None, zone: tzinfo = UTC, *, all_paused: bool = False
) -> PageState:
    """Tests and rehearsals leave no trace; a real one that is over has its `sent_at`, also if it failed.

    `letter`: its page on the dashboard, if there is one. `zone`: of the moments that it names.
    """
    if mailout.status not in (Status.COMPLETED, Status.CANCELLED):
        return PageState(
            status=PageStatus.SENDING,
            is_test=mailout.is_test,
            is_rehearsal=mailout.is_rehearsal and not mailout.is_test,
            note=writer_notes.waiting(mailout, letter, zone, all_paused=all_paused),
        )
    if mailout.is_test:
        return PageState(status=PageStatus.DRAFT, is_test=True, note=writer_notes.tried_out(mailout, letter))
    if mailout.is_rehearsal:
        return _rehearsal(mailout)
    sent = mailout.outcome is MailoutOutcome.SENT
    ledger, heard = mailout.ledger, reported(mailout)
    return PageState(
        status=PageStatus.SEND if sent else PageStatus.FAILED,
        note=None if sent else writer_notes.failure(mailout, letter),
        # Cancelled before anybody got it: it has not been sent.
        sent_at=mailout.completed_at if ledger.sent or mailout.status is Status.COMPLETED else None,
        sent_count=ledger.sent,
        failed_count=ledger.failed,
        delivered_count=mailout.metrics.get("delivered", 0) if heard else None,
        bounce_rate=_share(mailout, "bounced") if heard else None,
        unsub_rate=_share(mailout, "unsubscribed") if mailout.metrics else None,
    )


def awaits_test(mailout: Mailout) -> bool:
    """Whether its page may still ask for a test: it waits for one, or was one of which nothing was sent."""
    if mailout.is_test:
        return mailout.status is Status.CANCELLED and mailout.ledger.sent + mailout.ledger.unknown == 0
    return mailout.status is Status.PENDING and mailout.defer_reason is DeferReason.UNTESTED


def _share(mailout: Mailout, metric: str) -> float:
    """Of what was sent. Nothing sent: nothing to divide by."""
    sent = mailout.ledger.sent
    return round(mailout.metrics.get(metric, 0) / sent, 4) if sent else 0.0


def _rehearsal(mailout: Mailout) -> PageState:
    n = mailout.ledger.sent
    written = "1 letter was" if n == 1 else f"{n:,} letters were"
    note = f"Rehearsed: {written} written to a folder."
    return PageState(status=PageStatus.DRAFT, is_rehearsal=True, note=note)
