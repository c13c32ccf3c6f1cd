"""What is read of sign-ups: counts by day, welcome letters that are owed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mailout.base.select import Reads, View, every
from mailout.readers.port import OwedWelcome, SignUpDay

DAYS = View("read_sign_up_days", SignUpDay, ("day", "list_key"))
WELCOMES = View("read_welcomes", OwedWelcome, ("list_key", "email"))


def sign_up_days(store: Reads, since: str) -> Sequence[SignUpDay]:
    """From that day on, the newest first."""
    return list(every(store, DAYS, {"day >=": since}, order=["-day"]))


def owed_welcomes(store: Reads, since: float, *, rehearsal: bool) -> Iterator[OwedWelcome]:
    """Of who joined since then: those whose welcome letter is not in the outbox yet."""
    unwritten = "is_rehearsed" if rehearsal else "is_written"
    yield from every(store, WELCOMES, {"joined_at >": since, unwritten: False})
