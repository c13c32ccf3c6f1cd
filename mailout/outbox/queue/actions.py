"""What a person can do with a mailout: from the command line, from Prefect's pages, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from mailout.base.errors import UsageError
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.port import Message
from mailout.outbox.delivery.protocol import TRIED_ONCE, Timing
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


def others_than_reached(mailout: Mailout) -> str:
    """The way to those who have not got what was cancelled."""
    segment = f"""mailout segments add others 'not got "{mailout.id}"'"""
    return f"To reach the others: {segment}, then send a copy of it with the segment others."


def retry(store: QueueStore, id: str) -> int:
    """Try its failed messages again, and no others; how many."""
    mailout = require_here(store.mailout(id))
    retried = store.retry_failed(mailout.id)
    if retried:
        return retried
    if mailout.status is Status.CANCELLED:
        raise UsageError(
            "It was cancelled: nothing of it is tried again.", remedy=others_than_reached(mailout)
        )
    refused = refused_by_checks(store, mailout)
    if refused:
        codes = ", ".join(sorted({str(row["error_code"]) for row in refused}))
        raise UsageError(
            f"Nothing is tried again: the checks refused {len(refused):,} before sending ({codes})"
            " and would refuse them again.",
            remedy="Correct these addresses or values; the next letter reaches them.",
        )
    waiting = f" {mailout.ledger.pending:,} wait already." if mailout.ledger.pending else ""
    raise UsageError(f"No message of it has failed: there is nothing to try again.{waiting}")


def refused_by_checks(store: QueueStore, mailout: Mailout) -> Sequence[Message]:
    """Those that failed without being sent, up to a thousand: `retry` leaves them as they are."""
    if not mailout.ledger.failed:
        return ()
    return outbox_rows.messages(store, mailout.id, states=[State.VALIDATION_FAILED])


def retry_single_mail(store: QueueStore, id: str) -> None:
    """Try one failed mail without a mailout again, with all its attempts before it."""
    row = _single_mail(store, id)
    if row["state"] == State.VALIDATION_FAILED:
        raise UsageError(
            f"The checks refused it before it was sent ({row['error_code']}): it would be refused again.",
            remedy="Correct it, and hand it in again with another idempotency key.",
        )
    if row["state"] != State.FAILED:
        raise UsageError(f"It has not failed: it is {row['state']}.", remedy=_INSTEAD.get(row["state"], ""))
    store.retry_failed(None, ids=[id])


def cancel_single_mail(store: QueueStore, id: str) -> None:
    """Take back one mail without a mailout that nobody has begun to send."""
    if not store.cancel_single_mails([_single_mail(store, id)["id"]]):
        state = outbox_rows.message(store, id)["state"]
        raise UsageError(f"It does not wait: it is {state}.", remedy=_INSTEAD.get(state, ""))


def _single_mail(store: QueueStore, id: str) -> Message:
    row = outbox_rows.message(store, id)
    if row["campaign_id"] is not None:
        raise UsageError(
            "It is a message of a mailout, and no single mail.",
            remedy=f"For its mailout: mailout queue show {row['campaign_id']}",
        )
    if TRIED_ONCE in (row["variables"] or {}):
        raise UsageError(
            "It is a notification: its row in the producer's queue says when it is sent.",
            remedy="To send it again: mailout notify requeue ID",
        )
    return row


_INSTEAD: Mapping[str, str] = {
    State.UNKNOWN: "Look whether it arrived, then: mailout queue settle --message ID --as …",
    State.PENDING: "To cancel it: mailout messages cancel ID",
    State.RETRY_SCHEDULED: "It is tried again by itself. To cancel it: mailout messages cancel ID",
    State.FAILED: "To try it again: mailout messages retry ID",
}


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
