"""One line of `mailout doctor`, and how a part's lines are collected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from mailout.base.errors import CheckSkipped, MailoutError

ASK_AGAIN = "Check its address and this machine's network, then run `mailout doctor` again."


Level = Literal["ok", "warn", "fail"]


class Check(NamedTuple):
    """One line of `doctor`."""

    name: str
    level: Level
    message: str
    remedy: str = ""


class CheckGroup(NamedTuple):
    """One thing that is asked, and its lines as they come in."""

    name: str
    checks: Iterable[Check]


def checked(name: str, look: Callable[[], Iterable[Check]]) -> Iterator[Check]:
    """What a part finds; one that does not answer has failed, one that may not be looked at need not have."""
    try:
        yield from look()
    except CheckSkipped as error:
        yield Check(name, "warn", error.message, error.remedy or "")
    except MailoutError as error:
        yield Check(name, "fail", error.message, error.remedy or ASK_AGAIN)
