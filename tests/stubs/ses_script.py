"""What the stub is told to do wrong: rules, tried in order, the first that fits is followed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Deed = Literal["answer", "drop", "hang", "delay", "entry"]


@dataclass(slots=True)
class Rule:
    """One misbehaviour.

    do           answer (status, code, message), drop the connection, hang, delay, or fail one bulk entry
    headers      of that answer, besides its own
    body, cut    answer this body, whatever it is; cut: promise more of it, and close the connection
    accept       the mail is taken before that (for answer, drop and hang)
    aws          answer with AWS's error body; without, as a proxy would; request_id: and with a request id
    operation    only for this one (GetAccount: only if it is named); to: only if this is part of an address
    skip, times  leave the first ones alone; follow it so often (None: always)
    probability  of being followed, drawn from the script's seed
    """

    do: Deed
    accept: bool = False
    status: int = 500
    code: str = "InternalServiceErrorException"
    message: str = ""
    aws: bool = True
    request_id: bool = True
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    cut: bool = False
    seconds: float = 0.0
    operation: str | None = None
    to: str | None = None
    skip: int = 0
    times: int | None = None
    probability: float = 1.0

    def fits(self, operation: str, addresses: Sequence[str]) -> bool:
        if self.operation not in (None, operation):
            return False
        return self.to is None or any(self.to in address for address in addresses)

    def due(self, chance: random.Random) -> bool:
        if self.probability < 1.0 and chance.random() >= self.probability:
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.times is None:
            return True
        self.times -= 1
        return self.times >= 0


class Script:
    def __init__(self, rules: Sequence[dict[str, Any]] = (), seed: int = 0) -> None:
        self._rules = [Rule(**rule) for rule in rules]
        self._chance = random.Random(seed)
        self.followed = 0  # how often it went wrong

    def for_call(self, operation: str, addresses: Sequence[str]) -> Rule | None:
        for rule in self._rules:
            if rule.do != "entry" and rule.fits(operation, addresses) and rule.due(self._chance):
                self.followed += 1
                return rule
        return None

    def for_question(self, operation: str) -> Rule | None:
        for rule in self._rules:
            if rule.operation == operation and rule.due(self._chance):
                self.followed += 1
                return rule
        return None

    def for_entry(self, address: str) -> Rule | None:
        for rule in self._rules:
            if rule.do == "entry" and rule.fits("SendBulkEmail", [address]) and rule.due(self._chance):
                self.followed += 1
                return rule
        return None
