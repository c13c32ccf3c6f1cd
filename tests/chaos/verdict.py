"""What is counted when a scene is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mailout.delivery.states import COLUMN_OF, Column, State
from mailout.queue.mailout import Mailout


@dataclass(frozen=True)
class Verdict:
    """What became of one scene; adding them up gives a row of the table."""

    scenes: int = 0
    hits: int = 0  # how often the fault struck
    accepted: int = 0
    twice: int = 0  # accepted more than once, by the receiver's record
    lost: int = 0  # neither accepted nor waiting nor known to be in doubt or refused
    unknown: int = 0
    failed: int = 0  # refused for good, and said to be so
    stuck: int = 0  # waits after all is well again, and nothing says why
    unbalanced: int = 0  # mailouts whose ledger is not what their messages say, counters that drifted

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(*(mine + theirs for mine, theirs in zip(self.numbers, other.numbers, strict=True)))

    @property
    def numbers(self) -> Sequence[int]:
        return tuple(vars(self).values())

    @property
    def is_good(self) -> bool:
        return not (self.twice or self.lost or self.stuck or self.unbalanced)


def balances(mailout: Mailout, states: Mapping[str, State]) -> bool:
    """Whether its ledger is what its messages say."""
    counted = Counter(COLUMN_OF[state].value for state in states.values())
    ledger = mailout.ledger
    return ledger.balances and all(getattr(ledger, one.value) == counted[one.value] for one in Column)
