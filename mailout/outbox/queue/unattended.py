"""What waits in the queue and nobody is sending: for the watch, which starts a run of the queue.

Each thing has a key, and how many seconds it may wait before it counts: somebody may be about to take it up.
"""

from __future__ import annotations

from collections.abc import Mapping

from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import DeferReason, Mailout, Status
from mailout.outbox.queue.port import QueueStore

JUST_ASKED = 15.0
"""Whoever has written a mailout into the queue is mostly about to send it."""
ONE_TURN = 60.0
"""A run that is sending another mailout looks at the queue after each time slice."""
WATCH_SECONDS = 5.0
"""So long the others are watched to see how fast they are."""
FULL = 0.9
"""Of the rate: whoever comes so near to it leaves no room."""
WORTH_SECONDS = 20.0
"""What ends sooner than that by itself is left alone: a sender that joins has to begin first."""


def unattended(
    store: QueueStore, *, lease: float, rehearses: bool, unanswered_for: float
) -> Mapping[str, float]:
    """Mailouts that are due, and requests whose event was lost. Cheap where there is nothing."""
    due = [one for one in queue_rows.due_mailouts(store, lease) if one.is_rehearsal == rehearses]
    asked = queue_rows.asked(store, waiting=unanswered_for)
    if not (due or asked) or queue_rows.all_paused(store):
        return {}
    now = store.now()
    busy = any(
        one.silent_for(now, lease) <= lease
        for one in queue_rows.mailouts(store, statuses=[Status.PROCESSING])
    )
    found = {f"request {one.ref} {one.how}": 0.0 for one in asked}
    for one in due:  # another key for each time that it falls due
        found[f"mailout {one.id} {one.due_since}"] = _wait_before_start(one, now, busy)
    return found


def _wait_before_start(mailout: Mailout, now: float, busy: bool) -> float:
    if mailout.status is Status.PROCESSING:
        return 0.0  # its sender has died
    return ONE_TURN if busy else max(0.0, mailout.created_at + JUST_ASKED - now)


def slow_or_tested(store: QueueStore, *, rehearses: bool, speed: float, rate: float) -> Mapping[str, float]:
    """Mailouts that one more sender would make faster, and those that were held until a test had gone out.

    `speed`: attempts that all senders together begin in a second.
    """
    if queue_rows.all_paused(store):
        return {}
    found = {}
    for one in queue_rows.mailouts(store, statuses=[Status.PENDING, Status.PROCESSING]):
        if one.is_rehearsal != rehearses:
            continue
        if one.status is Status.PROCESSING and would_help(speed, rate, one.ledger.pending):
            found[f"slow {one.id}"] = 0.0
        elif was_tested(store, one):
            found[f"tested {one.id}"] = 0.0
    return found


def would_help(speed: float, rate: float, pending: int) -> bool:
    """Whether one more sender would make a mailout faster that others are sending already.

    `speed`: attempts that all together begin a second; `rate` 0: no limit.
    Where none begins, whoever sends it waits for a retry, or has died: neither leaves anything to share.
    """
    has_room = not rate or speed < FULL * rate
    return has_room and 0 < speed * WORTH_SECONDS < pending


def was_tested(store: QueueStore, mailout: Mailout) -> bool:
    """A test of its page or file has gone out since it was held for want of one."""
    if mailout.status is not Status.PENDING or mailout.defer_reason is not DeferReason.UNTESTED:
        return False
    tested_at = queue_rows.last_test(store, ref=mailout.ref)
    return tested_at is not None and tested_at > (mailout.locked_at or 0.0)
