"""A letter as its author wrote it, and as it is sent: read, its media stored, rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from mailout.base.settings import Settings
from mailout.kinds.mailouts.readiness import sensible_fallback, unknown_variables
from mailout.kinds.mailouts.reading import Reading, Rendered
from mailout.letters.audience import list_rows
from mailout.letters.audience.list_changes import own_look
from mailout.letters.audience.port import Subscribers
from mailout.letters.content import layout
from mailout.letters.content.brand import Brand
from mailout.letters.content.checks import require_subject
from mailout.letters.content.document import Problem
from mailout.letters.content.from_settings import brand_of, footer_of
from mailout.letters.content.media import keep_media
from mailout.letters.content.model import Content
from mailout.letters.content.port import MediaStore, Source, SourceMailout
from mailout.letters.content.variables import without_fallback


@dataclass(eq=False, repr=False)
class Letters:
    """From a page or file to the content that is sent. Nothing of it is queued."""

    _settings: Settings
    _store: Subscribers
    _media: MediaStore
    _source_of: Callable[[str], Source]
    _rehearses: bool

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
        found = (
            *(_without_web_page(content) if on_web else ()),
            *unknown_variables(self._store, content, source_mailout.list_key),
        )
        return replace(document, problems=(*document.problems, *found)), content

    def _brand(self, list_key: str | None) -> Brand:
        brand, of = brand_of(self._settings), list_rows.list_or_none(self._store, list_key)
        return brand if of is None else brand.with_own(own_look(of), of.footer)


def _without_web_page(content: Content) -> Iterator[Problem]:
    """Its author expects a page on the web."""
    for written in without_fallback(content):
        name = written.strip("{} ")
        yield Problem(
            "no_web_page",
            "The letter has no page on the web and no link to it: this variable has no fallback. Write what"
            f" everybody may read: {{{{ {name} | {sensible_fallback(name)} }}}}.",
            where=written,
        )
