"""A page or file as it was read, before it is a mailout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from mailout.content.document import Document, Problem
from mailout.content.model import Content
from mailout.content.port import SourceMailout
from mailout.content.preflight import findings

Rendered = tuple[Document, Content]


@dataclass(frozen=True, slots=True)
class Announcement:
    """What a person should know before a mailout goes to people."""

    subject: str
    people: int
    from_name: str | None
    from_email: str


class Reading:
    """A source as it was read at one moment, and what is sent of it: rendered once, its media stored once."""

    def __init__(
        self, source: SourceMailout, render: Callable[[SourceMailout], Rendered], again: bool
    ) -> None:
        self.source = source
        self.again = again  # rehearse it once more, although nothing has changed
        self._render = render
        self._rendered: Rendered | None = None

    def render(self) -> Rendered:
        if self._rendered is None:
            self._rendered = self._render(self.source)
        return self._rendered

    @property
    def is_rendered(self) -> bool:
        return self._rendered is not None

    @property
    def content(self) -> Content:
        return self.render()[1]

    @cached_property
    def findings(self) -> tuple[Problem, ...]:
        """What its author should look at."""
        return findings(*self.render())

    def is_test(self, test: bool | None) -> bool:
        return self.source.is_test if test is None else test
