"""A mailout that somebody asked for from outside. It is written down before anything else happens with it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mailout.content.notion.links import page_id_of


class How(StrEnum):
    """What exactly is asked for."""

    AS_WRITTEN = "as_written"  # a test or not, as the page or file says
    TEST = "test"  # to TEST_EMAILS alone
    REAL = "real"
    IF_READY = "if_ready"  # only if the page is Ready and its time has come


@dataclass(frozen=True, slots=True)
class Request:
    """The same one, asked for again within a minute, is one."""

    ref: str
    how: How = How.AS_WRITTEN

    @classmethod
    def of(cls, ref: str, test: bool | None = None, if_ready: bool = False) -> Request:
        """A page has one name here, whether its id or its address was given."""
        ref = page_id_of(ref) or ref
        if if_ready:
            return cls(ref, How.IF_READY)
        if test is None:
            return cls(ref)
        return cls(ref, How.TEST if test else How.REAL)

    @property
    def test(self) -> bool | None:
        return {How.TEST: True, How.REAL: False}.get(self.how)

    @property
    def if_ready(self) -> bool:
        return self.how is How.IF_READY
