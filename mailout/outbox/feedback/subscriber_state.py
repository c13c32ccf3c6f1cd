"""A subscriber's status after what became known: any order of the same changes ends in the same state.

The status follows its priority (`bounced > unsubscribed > active`). Among changes to the
same status the latest counts, and a bounce brings its type along. A complaint stays on
record for good: who complained is not asked back, whatever else they do. Whatever else is dated before
a confirmed sign-up says nothing of the person since.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mailout.letters.audience.port import PRIORITY
from mailout.outbox.feedback.port import StatusChange

SOFT_BOUNCES = 3
"""Different messages that bounced softly, without a delivery between them, end mail."""


@dataclass(frozen=True, slots=True)
class SubscriberState:
    """The columns of `subscribers` that feedback may change."""

    status: str = "active"
    status_updated_at: float | None = None
    bounce_type: str | None = None
    bounce_subtype: str | None = None
    complained_at: float | None = None
    confirmed_at: float | None = None  # never changed by feedback


def with_soft(
    hard: SubscriberState, soft: SubscriberState | None
) -> tuple[SubscriberState, SubscriberState | None]:
    """What a subscriber's status is, and what it would be without soft bounces (None: the same).

    Three messages that bounced softly, with no delivery between them, end mail as a permanent bounce does;
    but a delivery that is reported late takes it back, so what was there before must not be lost.
    """
    if soft is None or hard.status == "bounced":
        return hard, None
    return replace(soft, complained_at=hard.complained_at, confirmed_at=hard.confirmed_at), hard


def after(known: SubscriberState, change: StatusChange) -> SubscriberState:
    if not change.complained and known.confirmed_at is not None and change.at <= known.confirmed_at:
        return known
    if change.complained:
        known = replace(known, complained_at=max(known.complained_at or change.at, change.at))
    rank, incoming = PRIORITY[known.status], PRIORITY[change.status]
    if incoming < rank or (incoming == rank and _weight(change) <= _weight(known)):
        return known
    moved = replace(known, status=change.status, status_updated_at=change.at)
    if change.status != "bounced":
        return moved
    return replace(moved, bounce_type=change.bounce_type, bounce_subtype=change.bounce_subtype)


def _weight(one: SubscriberState | StatusChange) -> tuple[float, str, str]:
    """The later one counts; of two at the same moment, always the same one."""
    at = one.at if isinstance(one, StatusChange) else one.status_updated_at
    moment = float("-inf") if at is None else at
    if one.status != "bounced":
        return moment, "", ""
    return moment, one.bounce_type or "", one.bounce_subtype or ""
