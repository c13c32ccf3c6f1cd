"""A provider that throttles: whose matter it is, the account's or one message's, and when it is enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mailout.outbox.delivery.protocol import Claimed, Outcome, OutcomeKind

ONLY_THROTTLED_SECONDS = 60.0
"""Of nothing but throttling: then the mailout waits instead."""
SILENCE_SECONDS = 40.0
"""Longer than any pause between two calls while it lasts: a throttle after it begins a new count."""
THROTTLES_AN_ATTEMPT = 5
"""A message that alone is throttled spends an attempt every so many times: else it is tried for ever."""
LONGEST_PAUSE_SECONDS = 30.0


@dataclass(slots=True)
class _Message:
    times: int = 0  # throttled, since it last spent an attempt
    alone: int = 0  # of them, when the others were not
    accepted: int = 0  # how many others had been accepted the last time
    throttled: int = 0  # how many throttles there had been the last time


class Throttling:
    """What one process has heard, over all its runs. Not safe for several threads: the caller locks."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._last_at = 0.0
        self._accepted = 0
        self._throttled = 0
        self._messages: dict[str, _Message] = {}
        self.outcome: Outcome | None = None  # the last throttle

    def learn(self, rows: Sequence[Claimed], outcomes: Sequence[Outcome], now: float) -> None:
        """How one call ended."""
        self._accepted += sum(outcome.kind is OutcomeKind.SENT for outcome in outcomes)
        for row, outcome in zip(rows, outcomes, strict=True):
            if outcome.kind is OutcomeKind.THROTTLED:
                self.outcome = outcome
                self._count(row)
            elif self._messages:
                self._messages.pop(row.attempt.id, None)
        if any(outcome.kind is not OutcomeKind.THROTTLED for outcome in outcomes):
            self._since = None
        else:
            if self._since is None or now - self._last_at > SILENCE_SECONDS:
                self._since = now
            self._last_at = now

    def _count(self, row: Claimed) -> None:
        message = self._messages.setdefault(row.attempt.id, _Message())
        others_were_not = self._accepted > message.accepted or self._throttled == message.throttled
        self._throttled += 1
        message.times += 1
        message.alone += others_were_not or message.times == 1
        message.accepted, message.throttled = self._accepted, self._throttled

    def spends_an_attempt(self, id: str, *, must_end: bool = False) -> bool:
        """Whether this throttle is the message's own, and one of the fifth ones. `must_end`: every fifth one
        spends an attempt, whosever it is."""
        message = self._messages.get(id)
        if message is None or (message.times if must_end else message.alone) < THROTTLES_AN_ATTEMPT:
            return False
        del self._messages[id]
        return True

    def pause(self, id: str) -> float:
        """Before the message is tried again: longer each time."""
        message = self._messages.get(id)
        return min(LONGEST_PAUSE_SECONDS, 2.0 ** (message.times - 1 if message else 0))

    @property
    def is_enough(self) -> bool:
        """A minute of nothing but throttling."""
        return self._since is not None and self._last_at - self._since >= ONLY_THROTTLED_SECONDS

    def clear(self) -> None:
        """The mailout waits for it now: the next minute begins when it is sent again."""
        self._since = None
