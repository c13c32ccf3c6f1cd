"""A page or file as it was read, before it is a mailout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from mailout.letters.content.document import Document, Problem
from mailout.letters.content.model import Content
from mailout.letters.content.port import SourceMailout
from mailout.letters.content.preflight import findings
from mailout.outbox.queue.mailout import Mailout

Rendered = tuple[Document, Content]


@dataclass(frozen=True, slots=True)
class Announcement:
    """What a person should know before a mailout goes to people."""

    subject: str
    people: int
    from_name: str | None
    from_email: str
    snoozed: int = 0  # not among them: they asked for a pause
    edited: str = ""  # after some people got it: what that means
    segment: str | None = None  # of a letter for a part of its list: its name,
    out_of: int = 0  # and how many the whole list are

    @property
    def reach(self) -> str:
        """`212 of 2,469 people (the segment “porto”)`."""
        if self.segment is None:
            return "1 person" if self.people == 1 else f"{self.people:,} people"
        return f"{self.people:,} of {self.out_of:,} people (the segment “{self.segment}”)"


class Reading:
    """A source as it was read at one moment, and what is sent of it: rendered once, its media stored once."""

    def __init__(
        self, source: SourceMailout, render: Callable[[SourceMailout], Rendered], again: bool
    ) -> None:
        self.source = source
        self.again = again  # rehearse it once more, although nothing has changed
        self._render = render

    @cached_property
    def rendered(self) -> Rendered:
        return self._render(self.source)

    @property
    def is_rendered(self) -> bool:
        return "rendered" in vars(self)

    @property
    def content(self) -> Content:
        return self.rendered[1]

    @cached_property
    def findings(self) -> tuple[Problem, ...]:
        """What its author should look at."""
        return findings(*self.rendered)

    def is_test(self, test: bool | None) -> bool:
        return self.source.is_test if test is None else test


class LoadedMailout:
    """A mailout that was read and not refused. No dataclass: Prefect would walk through all of it."""

    def __init__(
        self,
        reading: Reading,
        *,
        is_test: bool,
        id: str | None,
        known: Mailout | None,
        asked_at: float | None = None,
        not_before: float | None = None,
        requested: str | None = None,
        by_page: bool = False,
    ) -> None:
        self.reading = reading
        self.is_test = is_test
        self.id = id  # None: a rehearsal's id is of its rendered content, too
        self.asked_at = asked_at
        self.by_page = by_page
        self.requested = requested  # by a person, on the dashboard or over HTTP, to be sent for real
        self.not_before = not_before  # as its page says
        self.known = known  # it is in the queue already, with its content

    @property
    def subject(self) -> str:
        return self.known.subject if self.known else self.reading.source.document.subject
