"""What is counted when a scene is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mailout.outbox.delivery.states import COLUMN_OF, Column, State
from mailout.outbox.queue.mailout import Mailout


@dataclass(frozen=True)
class Verdict:
    """What became of one scene; adding them up gives a row of the table."""

    scenes: int = 0
    hits: int = 0  # how often the fault struck
    accepted: int = 0
    twice: int = 0  # accepted more than once, by the receiver's record
    lost: int = 0  # neither accepted nor waiting nor known to be in doubt or refused
    unknown: int = 0
    failed: Counter[str] = field(default_factory=Counter)  # recorded as not sent, by the code that says why
    stuck: int = 0  # waits although all is well again and a person has resumed what had a reason to wait
    misreported: int = 0  # records, and rows of a producer, that say something else than what happened
    unbalanced: int = 0  # mailouts whose ledger is not what their messages say, counters that drifted

    def __add__(self, other: Verdict) -> Verdict:
        mine, theirs = vars(self).values(), vars(other).values()
        return Verdict(*(one + another for one, another in zip(mine, theirs, strict=True)))

    @property
    def problems(self) -> Sequence[str]:
        """What must never be, in words."""
        found = {
            "accepted twice": self.twice,
            "lost": self.lost,
            "stuck": self.stuck,
            "recorded or reported wrongly": self.misreported,
            "ledgers or counters off": self.unbalanced,
        }
        return [f"{number} {what}" for what, number in found.items() if number]


def balances(mailout: Mailout, states: Mapping[str, State]) -> bool:
    """Whether its ledger is what its messages say."""
    counted = Counter(COLUMN_OF[state].value for state in states.values())
    ledger = mailout.ledger
    return ledger.balances and all(getattr(ledger, one.value) == counted[one.value] for one in Column)


def is_told_rightly(
    row: Mapping[str, object], error: Mapping[str, object], events: int, *, accepted: bool, attempts: int
) -> bool:
    """A row that its producer sees as ended: told once, after some attempts, and true.

    A mail in doubt is told as `failed` with the code `outcome_unknown`: that alone may turn out either way.
    """
    tried = row["fanout_attempts"]
    if events != 1 or not isinstance(tried, int) or not 1 <= tried <= attempts:
        return False
    match row["fanout_status"]:
        case "sent":
            return accepted
        case "failed":
            code = error.get("code")
            return bool(code) and (code == "outcome_unknown" or not accepted)
        case _:
            return False  # nobody has left, so nothing may be skipped
