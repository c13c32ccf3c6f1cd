"""Notes on a page: comments, since a line within it would become part of the letter."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mailout.adapters.notion.calls import Json, NotionCalls
from mailout.content.notion.page import property_value, text_items, text_of
from mailout.errors import SourceRefused

STATUS_NOTE = "status_note"
"""The text property that says it where the integration may not comment, if there is one."""


class PageNotes:
    """What whoever reads the page should know."""

    def __init__(
        self, calls: NotionCalls, page: Callable[[str], Json], warn_once: Callable[[Sequence[str]], None]
    ) -> None:
        self._calls = calls
        self._page = page
        self._warn_once = warn_once

    def add(self, page_id: str, text: str) -> None:
        """A comment more."""
        try:
            self._comment(page_id, text)
        except SourceRefused:
            self._write(page_id, text)

    def keep(self, page_id: str, head: str, text: str | None, nothing: str) -> None:
        """The one comment that begins with `head`, brought up to date. `text` None: it says `nothing`, if it
        is there at all."""
        try:
            id, before = self._find(page_id, head)
            written = text or (nothing if id else None)
            if written is None or written == before:
                return
            if id is None:
                self._comment(page_id, written)
                return
            items = text_items(written)
            self._calls.make("updating a comment", lambda api: api.comments.update(id, rich_text=items))
        except SourceRefused:
            there = (self._page(page_id).get("properties") or {}).get(STATUS_NOTE)
            if text is not None or text_of(there).startswith(head):
                self._write(page_id, text or nothing)

    def _find(self, page_id: str, head: str) -> tuple[str | None, str]:
        comments = self._calls.pages(
            "reading a page's comments", lambda api, paging: api.comments.list(block_id=page_id, **paging)
        )
        for comment in comments:
            runs = comment.get("rich_text") or ()
            words = "".join(str(run.get("plain_text") or "") for run in runs)
            if words.startswith(head):
                return str(comment.get("id")), words
        return None, ""

    def _comment(self, page_id: str, text: str) -> None:
        body = {"parent": {"page_id": page_id}, "rich_text": text_items(text)}
        self._calls.make("commenting on a page", lambda api: api.comments.create(**body), repeatable=False)

    def _write(self, page_id: str, text: str) -> None:
        there = (self._page(page_id).get("properties") or {}).get(STATUS_NOTE) or {}
        written = property_value(str(there.get("type")), text)
        if written is None:
            self._warn_once([f"{STATUS_NOTE} (the integration may not comment)"])
            return
        self._calls.make(
            f"updating the page {page_id}",
            lambda api: api.pages.update(page_id, properties={STATUS_NOTE: written}),
        )
