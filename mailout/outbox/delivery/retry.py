"""What an outcome means for its message: `(outcome, attempts) → next state, when`."""

from __future__ import annotations

import hashlib
from functools import partial

from mailout.outbox.delivery.protocol import Claimed, Outcome, OutcomeKind, Result, RetryPlan
from mailout.outbox.delivery.states import State


def decide(
    outcome: Outcome,
    claimed: Claimed,
    plan: RetryPlan,
    duration_ms: int,
    *,
    throttle_pause: float | None = 1.0,
) -> Result:
    """The step that this attempt's message takes next. `throttle_pause` None: a throttle costs an attempt."""
    result = partial(
        Result,
        claimed.attempt,
        provider_message_id=outcome.provider_message_id,
        code=outcome.code,
        category=outcome.category,
        message=outcome.message,
        original_code=outcome.original_code,
        duration_ms=duration_ms,
    )
    match outcome.kind:
        case OutcomeKind.SENT:
            return result(State.SENT)
        case OutcomeKind.PERMANENT:
            return result(State.FAILED)
        case OutcomeKind.INVALID:
            return result(State.VALIDATION_FAILED, uncharge=True)
        case OutcomeKind.UNKNOWN:
            return result(State.UNKNOWN)
        case OutcomeKind.THROTTLED if throttle_pause is not None:
            return result(State.PENDING, retry_in=throttle_pause, give_back=True)
        case OutcomeKind.QUOTA | OutcomeKind.STOP:
            return result(State.PENDING, give_back=True)
        case OutcomeKind.TRANSIENT | OutcomeKind.THROTTLED:
            if claimed.is_tried_once:  # who handed it in tries again, not before the provider wants it
                return result(State.FAILED, retry_in=outcome.retry_after, uncharge=True)
            if claimed.number >= plan.max_attempts:
                return result(State.FAILED, uncharge=True)
            return result(
                State.RETRY_SCHEDULED,
                retry_in=delay_after(claimed.attempt.id, claimed.number, plan),
                uncharge=True,
            )


def delay_after(message_id: str, attempt: int, plan: RetryPlan) -> float:
    """Delay n follows attempt n, with a jitter from a hash: the same message always waits the same time."""
    base = plan.delays[min(attempt, len(plan.delays)) - 1]
    digest = hashlib.sha256(f"{message_id}\n{attempt}".encode()).digest()
    unit = int.from_bytes(digest[:8]) / 2**64  # in [0, 1)
    return base * (1 + plan.jitter * (2 * unit - 1))
