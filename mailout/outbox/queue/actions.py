"""What a person can do with a mailout: from the command line, from Prefect's pages, over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from mailout.base.errors import UsageError
from mailout.outbox.delivery.protocol import Timing
from mailout.outbox.delivery.states import State
from mailout.outbox.queue.deferrals import defer
from mailout.outbox.queue.limits import Defer
from mailout.outbox.queue.mailout import DeferReason, Mailout, Status
from mailout.outbox.queue.port import QueueStore


class SettleVerdict(StrEnum):
    """What a person knows of messages in doubt."""

    SENT = "sent"
    FAILED = "failed"
    PENDING = "pending"


def require_here(mailout: Mailout) -> Mailout:
    """Its messages are still in the store: else nothing can be done with them."""
    if mailout.archived_at is not None:
        raise UsageError(
            "It is archived: its results are final.",
            remedy=f"Its messages are in {mailout.archived_to}.",
        )
    return mailout


def cancel(store: QueueStore, id: str) -> Mailout:
    """Cancel it. Mail already sent stays sent; nobody else gets it, and it cannot be resumed."""
    return store.cancel(require_open(store.mailout(id)).id)


def require_open(mailout: Mailout) -> Mailout:
    """It is not done, so there is something to cancel."""
    if mailout.status is Status.COMPLETED:
        raise UsageError("It is done: there is nothing to cancel.")
    return mailout


def pause(store: QueueStore, id: str, note: str | None = None) -> Mailout:
    """Hold it until somebody resumes it. What is in hand is finished."""
    if store.mailout(id).status not in (Status.PENDING, Status.PROCESSING):
        raise UsageError("It is over: there is nothing to pause.")
    return defer(store, id, Defer(DeferReason.PAUSED, None, note))


def resume(store: QueueStore, id: str) -> Mailout:
    """Let it go on, whatever it waited for."""
    if store.mailout(id).defer_reason is None:
        raise UsageError("It is not held: there is nothing to resume.")
    return store.resume(id)


def retry(store: QueueStore, id: str) -> int:
    """Try its failed messages again, and no others; how many."""
    retried = store.retry_failed(require_here(store.mailout(id)).id)
    if not retried:
        raise UsageError("No message of it has failed: there is nothing to try again.")
    return retried


def settle(
    store: QueueStore,
    id: str | None,
    verdict: SettleVerdict,
    timing: Timing,
    messages: Sequence[str] | None = None,
) -> int:
    """Say what became of messages in doubt (all of them, or these); `pending` sends them again. Without a
    mailout: of these single mails."""
    if id is not None and not require_here(store.mailout(id)).ledger.unknown:
        raise UsageError("No message of it is in doubt: there is nothing to settle.")
    return store.settle(id, State(verdict.value.upper()), wait=timing.settle_wait, ids=messages)
