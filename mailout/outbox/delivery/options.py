"""How to send, and how a run of the sender ended: what goes in and what comes out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from mailout.outbox.delivery.protocol import Bucket, Claimed, Halt, Ledger, Outcome, Result, RetryPlan, Timing


class Ended(StrEnum):
    """Why a run of the sender is over."""

    DONE = "done"  # nothing pending, nothing in flight
    DEADLINE = "deadline"  # its time is up; there is more
    STOPPED = "stopped"  # a signal, or a stop asked through the store
    HALTED = "halted"  # paused, cancelled or deferred
    LIMITED = "limited"  # an hour's, a day's or the provider's allowance is spent
    REFUSED = "refused"  # configuration or account: a person must look
    CIRCUIT = "circuit"  # too many transient errors in a row
    THROTTLED = "throttled"  # a minute of nothing else


@dataclass(frozen=True, slots=True)
class SenderOptions:
    """How to send: handed in, never looked up."""

    worker: str
    rate: float
    timing: Timing
    concurrency: int | None = 1  # calls in flight; None: as many as the rate and the latency need
    one_by_one_rate: float = 0.0  # messages a second up to which each has a call of its own
    batch_size: int = 50
    retry: RetryPlan = field(default_factory=RetryPlan)
    pace_scope: str = "folder"
    circuit_failures: int = 20
    buckets: Callable[[float], Sequence[Bucket]] = lambda now: ()
    inline: bool = False  # calls run in the caller's own thread, for a virtual clock


@dataclass(frozen=True, slots=True)
class CallTime:
    """What calls took while a run lasted: measured, so that what is said about them is true."""

    seconds: float = 0.0  # of the run
    calls: int = 0
    messages: int = 0
    calling: float = 0.0  # seconds within calls, added up

    @property
    def latency(self) -> float:
        return self.calling / self.calls if self.calls else 0.0

    def concurrency_needed(self, rate: float) -> int:
        """Calls at a time that keep the pace; none for a rate of 0, which is no pace."""
        return math.ceil(rate * self.calling / self.messages) if self.messages else 0

    def __add__(self, other: CallTime) -> CallTime:
        return CallTime(
            self.seconds + other.seconds,
            self.calls + other.calls,
            self.messages + other.messages,
            self.calling + other.calling,
        )


@dataclass(frozen=True, slots=True)
class RunReport:
    """How a run ended: from this follows what happens next."""

    ended: Ended
    ledger: Ledger | None
    halt: Halt | None = None
    limited: str | None = None  # "hour", "day", "quota"
    outcome: Outcome | None = None  # the one that ended it
    call_time: CallTime = CallTime()


class Observer(Protocol):
    """Told of every result once it is durable."""

    def recorded(self, results: Sequence[tuple[Claimed, Result]], ledger: Ledger | None) -> None: ...
