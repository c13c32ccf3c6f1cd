"""The states of a message, what each counts as in the ledger, and the only steps between them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class State(StrEnum):
    """Where a message stands."""

    PENDING = "PENDING"  # frozen into the outbox, waits for its turn
    RECEIVED = "RECEIVED"  # claimed by a sender (passed through within one commit)
    VALIDATED = "VALIDATED"  # checked (passed through within the same commit)
    SENT_ATTEMPT = "SENT_ATTEMPT"  # the intent is durable; the transport may have been called
    SENT = "SENT"  # accepted by the transport
    FAILED = "FAILED"  # refused for good, or the last attempt failed
    RETRY_SCHEDULED = "RETRY_SCHEDULED"  # a transient error; waits for its next attempt
    VALIDATION_FAILED = "VALIDATION_FAILED"  # never called: the message itself is wrong
    SUPPRESSED = "SUPPRESSED"  # unsubscribed, or the mailout was cancelled, before its turn
    UNKNOWN = "UNKNOWN"  # an attempt began and nobody recorded how it ended


class Column(StrEnum):
    """The ledger's columns: `recipients` is their sum, always."""

    PENDING = "pending"
    IN_FLIGHT = "in_flight"
    SENT = "sent"
    FAILED = "failed"
    SUPPRESSED = "suppressed"
    UNKNOWN = "unknown"


COLUMN_OF: Mapping[State, Column] = {
    State.PENDING: Column.PENDING,
    State.RETRY_SCHEDULED: Column.PENDING,
    State.SENT_ATTEMPT: Column.IN_FLIGHT,
    State.SENT: Column.SENT,
    State.FAILED: Column.FAILED,
    State.VALIDATION_FAILED: Column.FAILED,
    State.SUPPRESSED: Column.SUPPRESSED,
    State.UNKNOWN: Column.UNKNOWN,
}
"""RECEIVED and VALIDATED are missing: no message rests there."""

WAITING = (State.PENDING, State.RETRY_SCHEDULED)
"""What a sender may claim."""

DOUBTFUL = (State.SENT_ATTEMPT, State.UNKNOWN)
"""What may still learn how its attempt ended."""

_ENDS_OF_AN_ATTEMPT = frozenset(
    {State.SENT, State.FAILED, State.RETRY_SCHEDULED, State.PENDING, State.VALIDATION_FAILED}
)

TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.PENDING: frozenset({State.SENT_ATTEMPT, State.SUPPRESSED, State.VALIDATION_FAILED, State.SENT}),
    State.RETRY_SCHEDULED: frozenset({State.SENT_ATTEMPT, State.SUPPRESSED, State.SENT}),
    State.SENT_ATTEMPT: _ENDS_OF_AN_ATTEMPT | {State.UNKNOWN},
    State.UNKNOWN: _ENDS_OF_AN_ATTEMPT,
    State.FAILED: frozenset({State.PENDING}),
    State.SENT: frozenset({State.FAILED}),
    State.VALIDATION_FAILED: frozenset(),
    State.SUPPRESSED: frozenset(),
}
"""From → to. Both stores load this table into a trigger that refuses every other step."""


def allowed(before: State, after: State) -> bool:
    return after in TRANSITIONS.get(before, frozenset())
