"""Reads a page's whole tree of blocks: every page of children, every depth, synced copies through."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from itertools import islice

from mailout.adapters.notion.calls import PASSES, Json, NotionCalls
from mailout.base.errors import SourceError, SourceNotFound, SourceRefused, SourceUnavailable
from mailout.letters.content.notion.blocks import MAX_BLOCKS, Block, as_mapping, walk
from mailout.letters.content.notion.page import text_of, title_of
from mailout.letters.content.refs import page_id_of

log = logging.getLogger(__name__)

MAX_READ_DEPTH = 100
"""Deeper than people write, and well within the stack."""
TAKEN_OUT = "The page was edited while it was read: a part of it is not there any more."
TOO_LONG = "The page is longer than a mail can be: its end is left out. Shorten it."
TOO_DEEP = f"What is nested deeper than {MAX_READ_DEPTH} is left out. Move it up."
CONTAINS_ITSELF = "A synced block contains itself. Take the inner one out."
HIDDEN = "Notion does not let its contents be read: they are left out."
UNSHARED_ORIGINAL = (
    "The synced block after this cannot be read. Share its original page with mailout, or copy the text here."
)
UNSHARED_NOTES = (
    "The meeting notes after this cannot be read. Share their page with mailout, or copy the text here."
)

_ELSEWHERE = frozenset({"child_page", "child_database", "link_to_page"})
"""Their children are pages of their own; the mail links to them."""

_MEETINGS = ("meeting_notes", "transcription")


class BlockReader:
    """One reading of one page. What may not be read becomes a block's `trouble`; an outage is raised."""

    def __init__(self, calls: NotionCalls) -> None:
        self._calls = calls
        self._left = MAX_BLOCKS
        self._cut = False
        self._titles: dict[str, str] = {}  # of pages that are pointed to
        self._originals: dict[str, list[Block]] = {}  # synced blocks: one reading serves every copy

    def tree(self, page_id: str) -> list[Block]:
        id = page_id_of(page_id) or page_id
        blocks = list(self._children(id, (id,)))
        if self._cut:
            blocks.append(Block(id, "unsupported", trouble=TOO_LONG))
        return blocks

    def _children(self, id: str, above: tuple[str, ...]) -> Iterator[Block]:
        answers = self._calls.pages(
            f"reading the blocks of {id}", lambda api, paging: api.blocks.children.list(id, **paging)
        )
        for answer in answers:
            if answer.get("in_trash") or answer.get("archived"):
                continue
            if not self._room(1):
                return
            yield self._block(answer, above)

    def _room(self, blocks: int) -> bool:
        self._left -= blocks
        self._cut = self._cut or self._left < 0
        return not self._cut

    def _block(self, answer: Json, above: tuple[str, ...]) -> Block:
        kind, id = str(answer.get("type")), str(answer.get("id"))
        data = as_mapping(answer.get(kind))
        if kind == "link_to_page":
            return Block.of({**answer, kind: {**data, "title": self._title(data)}})
        if kind in _ELSEWHERE:
            return Block.of(answer)
        # The original holds the children; a copy points to it, and it may be on a page nobody shared.
        if kind == "synced_block" and (original := as_mapping(data.get("synced_from")).get("block_id")):
            return self._with(answer, [str(original)], above, UNSHARED_ORIGINAL)
        if kind in _MEETINGS and isinstance(parts := data.get("children"), Mapping):
            # Summary and notes; the transcript is for the archive, not for readers.
            wanted = (parts.get("summary_block_id"), parts.get("notes_block_id"))
            return self._with(answer, [str(id) for id in wanted if id], above, UNSHARED_NOTES)
        if not answer.get("has_children"):
            return Block.of(answer)
        # Children of a type that the API does not know cannot be asked for either.
        return self._with(answer, [id], above, HIDDEN if kind == "unsupported" else None)

    def _title(self, link: Json) -> str:
        """Of the page that a block points to; empty if it is not shared with us."""
        id = str(link.get(str(link.get("type"))) or "")
        if link.get("type") != "page_id" or not id:
            return ""
        if id not in self._titles:
            try:
                page: Json = self._calls.make(f"reading the page {id}", lambda api: api.pages.retrieve(id))
            except (SourceRefused, SourceNotFound):
                page = {}
            self._titles[id] = text_of(title_of(as_mapping(page.get("properties"))))
        return self._titles[id]

    def _with(
        self, answer: Json, ids: list[str], above: tuple[str, ...], lenient: str | None = None
    ) -> Block:
        """The block with the children of `ids`. `lenient`: what to say when they are refused."""
        children: list[Block] = []
        for id in ids:
            if id in above:
                return Block.of(answer, children, CONTAINS_ITSELF)
            if len(above) > MAX_READ_DEPTH:
                return Block.of(answer, children, TOO_DEEP)
            if id in self._originals:
                children.extend(self._again(id))
                continue
            try:
                found = list(self._children(id, (*above, id)))
            except SourceUnavailable:
                raise
            except SourceError as error:
                if lenient is None and isinstance(error, SourceNotFound):
                    raise SourceUnavailable(TAKEN_OUT, remedy=PASSES) from error
                if lenient is None:
                    raise
                log.warning("%s %s", lenient, error.message)
                return Block.of(answer, children, lenient, is_lost=lenient is not HIDDEN)
            if answer.get("type") == "synced_block":
                self._originals[id] = found
            children.extend(found)
        return Block.of(answer, children)

    def _again(self, id: str) -> list[Block]:
        """A synced block once more. It counts again: copies of copies can double at every level."""
        size = sum(1 for _ in islice(walk(self._originals[id]), MAX_BLOCKS))
        return self._originals[id] if self._room(size) else []
