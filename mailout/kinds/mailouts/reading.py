"""A letter as its author wrote it, as it was read at one moment, and as it is sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from mailout.base.select import Reads
from mailout.base.settings import Settings
from mailout.letters.audience import list_rows
from mailout.letters.audience.list_changes import own_look
from mailout.letters.content import layout
from mailout.letters.content.brand import Brand
from mailout.letters.content.checks import require_subject
from mailout.letters.content.document import Document, Problem
from mailout.letters.content.from_settings import brand_of, footer_of
from mailout.letters.content.media import keep_media
from mailout.letters.content.model import Content
from mailout.letters.content.port import MediaStore, Source, SourceMailout
from mailout.letters.content.preflight import findings
from mailout.letters.content.variables import without_fallback
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
    ) -> None:
        self.reading = reading
        self.is_test = is_test
        self.id = id  # None: a rehearsal's id is of its rendered content, too
        self.asked_at = asked_at
        self.not_before = not_before  # as its page says
        self.known = known  # it is in the queue already, with its content

    @property
    def subject(self) -> str:
        return self.known.subject if self.known else self.reading.source.document.subject


class Letters:
    """From a page or file to the content that is sent. Nothing of it is queued."""

    def __init__(
        self,
        settings: Settings,
        store: Reads,
        media: MediaStore,
        source_of: Callable[[str], Source],
        *,
        rehearses: bool,
    ) -> None:
        self._settings = settings
        self._store = store
        self._media = media
        self._source_of = source_of
        self._rehearses = rehearses

    def read(self, ref: str) -> SourceMailout:
        """As it is written, and what it does not say, as its list says. An unknown list is refused later."""
        source = self._source_of(ref).load(ref)
        of = list_rows.named_list(self._store, source.list_key)
        if of is None:
            return source
        return replace(
            source,
            list_key=source.list_key and of.key,
            from_name=source.from_name or of.from_name,
            reply_to=source.reply_to or of.reply_to,
        )

    def reading(self, source_mailout: SourceMailout, again: bool = False) -> Reading:
        """Rendered when it is asked for, as it would be sent."""
        return Reading(source_mailout, self.render, again)

    def single(self, ref: str, list_key: str) -> tuple[SourceMailout, Content]:
        """A letter of a list that goes to one reader at a time: rendered as a mailout is, never queued."""
        source_mailout = replace(self.read(ref), list_key=list_key)
        return source_mailout, self.render(source_mailout)[1]

    def draft(self, source_mailout: SourceMailout) -> Rendered:
        """For a person to look at: pictures may be where only this machine finds them."""
        return self.render(source_mailout, public=False)

    def render(self, source_mailout: SourceMailout, *, public: bool | None = None) -> Rendered:
        """Its pictures and files stored, its layout and footer around it."""
        require_subject(
            source_mailout.document.subject
        )  # before the footer: what is wrong first is named first
        footer = footer_of(self._settings)
        public = not self._rehearses if public is None else public
        document = keep_media(source_mailout.document, source_mailout.read_media, self._media, public=public)
        content = layout.render(document, footer, self._brand(source_mailout.list_key))
        on_web = source_mailout.public or bool(footer.public_url and footer.view_in_browser)
        return _with_web_findings(document, content) if on_web else document, content

    def _brand(self, list_key: str | None) -> Brand:
        brand, of = brand_of(self._settings), list_rows.list_or_none(self._store, list_key)
        return brand if of is None else brand.with_own(own_look(of), of.footer)


def _with_web_findings(document: Document, content: Content) -> Document:
    """Its author expects a page on the web."""
    missing = [
        Problem(
            "no_web_page",
            "The letter has no page on the web and no link to it: this variable has no fallback. Write what"
            " everybody may read: {{ first_name | friend }}.",
            where=written,
        )
        for written in without_fallback(content)
    ]
    return replace(document, problems=(*document.problems, *missing))
