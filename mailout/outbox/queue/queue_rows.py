"""What is read of the queue: mailouts, requests, and what is on for everything."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypedDict

from mailout.base.select import Reads, View, every, first
from mailout.letters.audience.list_rows import GENERAL
from mailout.outbox.queue.mailout import WAITS_FOR_A_PERSON, Mailout, Status, untaken
from mailout.outbox.queue.port import Queue, Request


class Switch(TypedDict):
    name: str


class Turn(TypedDict):
    company_id: str
    at: float


MAILOUTS = View("read_mailouts", Mailout, ("id",), Mailout.of)
SWITCHES = View("read_switches", Switch, ("name",))
TURNS = View("read_turns", Turn, ("company_id",))
REQUESTS = View("read_requests", Request, ("ref", "how"))


def mailouts(store: Reads, *, statuses: Sequence[Status] = (), limit: int = 100) -> Sequence[Mailout]:
    """In the order in which they would be sent, then the newest first."""
    filters = {"status in": statuses} if statuses else {}
    return list(every(store, MAILOUTS, filters, order=["place", "urgency", "age"], limit=limit))


def due_mailouts(store: Reads, stale: float) -> Sequence[Mailout]:
    """What may be started now: pending and due, or processing with nobody seen for `stale` s."""
    now = store.now()
    found = every(store, MAILOUTS, {"status in": [Status.PENDING, Status.PROCESSING]})
    due = [one for one in found if one.may_start(now, stale)]
    return sorted(due, key=lambda one: (-one.priority, one.scheduled_at or one.created_at, one.id))


def same_content(store: Queue, id: str, since: float) -> Mailout | None:
    """The latest real mailout from another page that took the same to the same list, or is about to.

    What went out counts, whoever tried first. Of two that have sent nothing, the one that began first goes;
    `start` lets one that tries again begin anew.
    """
    this = store.mailout(id)
    if this.content_hash is None:
        return None
    real = {"is_test": False, "is_rehearsal": False, "status !=": Status.CANCELLED}
    found = every(store, MAILOUTS, real | {"content_hash": this.content_hash, "active_at >=": since})
    before = (this.started_at or math.inf, this.id)
    others = [
        one
        for one in found
        if one.ref != this.ref
        and (one.list_key or GENERAL) == (this.list_key or GENERAL)
        and (
            one.ledger.sent + one.ledger.unknown + one.ledger.in_flight > 0
            or (one.status is Status.PROCESSING and (one.started_at or 0.0, one.id) < before)
        )
    ]
    return max(others, key=lambda one: one.started_at or 0.0, default=None)


def needing_a_person(store: Reads) -> Sequence[Mailout]:
    """Those that wait for one, and those with messages in doubt (unless cancelled); the oldest first."""
    held = {"status": Status.PENDING, "defer_reason in": sorted(WAITS_FOR_A_PERSON)}
    found = [*every(store, MAILOUTS, held)]
    found += every(store, MAILOUTS, {"unknown >": 0, "status !=": Status.CANCELLED})
    return sorted({one.id: one for one in found}.values(), key=lambda one: (one.created_at, one.id))


def lately_sent(store: Reads, since: float, enough: int) -> Sequence[Mailout]:
    """Real ones with so many messages sent that are open, or ended after `since`."""
    real = {"is_test": False, "is_rehearsal": False, "sent >=": enough}
    open_ = every(store, MAILOUTS, real | {"status in": [Status.PENDING, Status.PROCESSING]})
    return [*open_, *every(store, MAILOUTS, real | {"completed_at >=": since})]


def last_turns(store: Reads) -> Mapping[str, float]:
    """When each company last sent."""
    return {row["company_id"]: row["at"] for row in every(store, TURNS)}


def next_test_run(store: Reads, ref: str) -> int:
    return sum(1 for _ in every(store, MAILOUTS, {"ref": ref, "is_test": True})) + 1


def unbegun_test(store: Reads, ref: str, content_hash: str, *, rehearsal: bool) -> Mailout | None:
    """One of exactly this content that only waits for its turn: nobody needs a second."""
    same = {"ref": ref, "is_test": True, "content_hash": content_hash, "is_rehearsal": rehearsal}
    waiting = every(store, MAILOUTS, same | {"status": Status.PENDING})
    return next((one for one in waiting if one.frozen_at is None and one.defer_reason is None), None)


def last_test(store: Reads, *, ref: str | None = None, content_hash: str | None = None) -> float | None:
    """When the latest test of this page or file (or of this content) had gone out to somebody."""
    filters = {"is_test": True, "is_rehearsal": False, "status": Status.COMPLETED, "sent >": 0}
    filters |= {"ref": ref} if ref is not None else {}
    filters |= {"content_hash": content_hash} if content_hash is not None else {}
    latest = first(store, MAILOUTS, filters, order=["-completed_at"])
    return latest.completed_at if latest else None


def all_paused(store: Reads) -> bool:
    return first(store, SWITCHES, {"name": "all_paused"}) is not None


def asked(store: Reads, waiting: float) -> Sequence[Request]:
    """Those that are due and nobody has answered for so many seconds, the oldest first. What was asked for
    later than now is old, too: the clock was ahead."""
    now = store.now()
    found = [one for one in requests(store) if (one.not_before or 0.0) <= now]
    if not found or not waiting:
        return found
    recent = store.select(REQUESTS, {"asked_at >": now - waiting, "asked_at <=": now + waiting})
    return [one for one in found if one not in recent]


def unserved(store: Reads, waiting: float) -> Sequence[Request]:
    """Those that have been due for so many seconds, and nobody has answered."""
    since = store.now() - waiting
    return [one for one in asked(store, waiting) if (one.not_before or 0.0) <= since]


def overdue(store: Reads, lease: float, *, rehearses: bool) -> Sequence[Mailout]:
    """Those that have been due for minutes while nobody sends anything, and nobody has paused it."""
    found = mailouts(store, statuses=[Status.PENDING, Status.PROCESSING])
    late = [one for one in untaken(found, store.now(), lease) if one.is_rehearsal == rehearses]
    return late if late and not all_paused(store) else ()


def stuck(store: Reads, lease: float, *, rehearses: bool) -> Sequence[Mailout]:
    """Those that nobody takes up, and those that nothing was sent of since they had to be tried again."""
    found = mailouts(store, statuses=[Status.PENDING, Status.PROCESSING])
    late = {one.id for one in overdue(store, lease, rehearses=rehearses)}
    failing = [one.id for one in found if one.is_rehearsal == rehearses and one.is_tried_again]
    late.update(() if all_paused(store) else failing)
    return [one for one in found if one.id in late]


def requests(store: Reads) -> Sequence[Request]:
    """All that nobody has answered, those that wait for their time included."""
    return store.select(REQUESTS, order=["asked_at"])


def planned(store: Reads) -> Sequence[Request]:
    """Those that wait for the time that a person chose, the soonest first."""
    now = store.now()
    found = store.select(REQUESTS, {"not_before >": now})
    return sorted(found, key=lambda one: one.not_before or 0.0)
