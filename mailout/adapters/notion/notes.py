"""Notes for whoever reads a page: comments, since a line within the page would become part of the letter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from mailout.adapters.notion.calls import Json, NotionCalls
from mailout.base.errors import SourceError, SourceNotFound, SourceRefused
from mailout.letters.content.notion.page import TEXT_LIMIT, property_value, text_items

STATUS_NOTE = "status_note"
"""The text property that takes the note where the integration may not comment."""


@dataclass(eq=False, repr=False)
class NotionNotes:
    _calls: NotionCalls
    _read_page: Callable[[str], Json]
    _warn: Callable[[Sequence[str]], None]

    def add(self, page_id: str, text: str) -> None:
        content = _cut(text)
        try:
            self._create(page_id, text_items(content))
        except SourceError as error:
            if not _is_refused(error):
                raise
            self._write_property(page_id, content, self._read_page(page_id))

    def _create(self, page_id: str, items: Sequence[Json]) -> None:
        body = {"parent": {"page_id": page_id}, "rich_text": items}
        self._calls.make("commenting on a page", lambda api: api.comments.create(**body), repeatable=False)

    def add_once(self, page_id: str, text: str, page: Json) -> None:
        """Unless it stands there already. Who may not read comments would repeat it: then the property, if
        there is one."""
        if _property_text(page) == _cut(text):
            return
        try:
            known = any(words == _cut(text) for _, words in self._comments(page_id))
        except SourceError as error:
            if not _is_refused(error):
                raise
            if STATUS_NOTE in (page.get("properties") or {}):
                self._write_property(page_id, _cut(text), page)
                return
            known = False
        if not known:
            self.add(page_id, text)

    def keep(self, page_id: str, heads: Sequence[str], text: str | None, nothing: str) -> None:
        """Our one comment that begins like this, or says `nothing`, brought up to date. `text` None: it says
        `nothing`, if it is there at all. Where the integration may not comment: the property."""
        heads = (*heads, nothing)
        try:
            found = [one for one in self._comments(page_id) if one[1].startswith(heads)]
            written = text or nothing
            if any(words == written for _, words in found):
                return
            if not self._update(reversed(found), written) and text is not None:
                self._create(page_id, text_items(text))
        except SourceError as error:
            if not _is_refused(error):
                raise
            page = self._read_page(page_id)
            before, written = _property_text(page), text or nothing
            if before != written and (text is not None or before.startswith(heads)):
                self._write_property(page_id, written, page)

    def _update(self, comments: Iterable[tuple[str, str]], text: str) -> bool:
        """The first of them that is ours: Notion has no others for us, whoever wrote the same words."""
        for id, _ in comments:
            with suppress(SourceNotFound):
                self._rewrite(id, text)
                return True
        return False

    def _rewrite(self, comment: str, text: str) -> None:
        items = text_items(text)
        self._calls.make("updating a comment", lambda api: api.comments.update(comment, rich_text=items))

    def can_be_read(self, page_id: str) -> bool:
        """Whether the integration may read comments; whether it may write them, only a comment would tell."""
        try:
            next(self._comments(page_id), None)
        except SourceRefused:
            return False
        return True

    def _comments(self, page_id: str) -> Iterator[tuple[str, str]]:
        """Their ids and what they say."""
        found = self._calls.pages(
            "reading the comments of a page",
            lambda api, paging: api.comments.list(block_id=page_id, **paging),
        )
        return ((str(comment.get("id")), _plain(comment.get("rich_text"))) for comment in found)

    def _write_property(self, page_id: str, text: str, page: Json) -> None:
        there = (page.get("properties") or {}).get(STATUS_NOTE) or {}
        written = property_value(str(there.get("type")), text)
        if written is None:
            self._warn([f"{STATUS_NOTE} (the integration may not comment)"])
            return
        self._calls.make(
            f"updating the page {page_id}",
            lambda api: api.pages.update(page_id, properties={STATUS_NOTE: written}),
        )


def _is_refused(error: SourceError) -> bool:
    """It may not comment, or Notion does not take this comment: no reason to leave the rest unwritten."""
    return isinstance(error, SourceRefused) or type(error) is SourceError


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_LIMIT // 2 else f"{text[: TEXT_LIMIT // 2 - 1]}…"


def _property_text(page: Json) -> str:
    return _plain(((page.get("properties") or {}).get(STATUS_NOTE) or {}).get("rich_text"))


def _plain(items: Sequence[Json] | None) -> str:
    return "".join(str(item.get("plain_text") or "") for item in items or ())
