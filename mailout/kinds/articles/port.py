"""What intake needs: requests, and the part of the store that keeps slices and batches of articles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from mailout.insight.page_status.port import PageStore
from mailout.letters.audience.port import Subscribers
from mailout.letters.audience.segment_tree import Tree
from mailout.letters.content.slices import Slice
from mailout.outbox.queue.mailout import Mailout, NewMailout
from mailout.outbox.queue.port import Requests


@dataclass(frozen=True, slots=True)
class SliceCounts:
    """What an import of slices changed."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticleBatch:
    """What one batch sends: the slices as they were when it was asked for."""

    article_key: str
    audience_filter: Mapping[str, str] = field(default_factory=dict)  # as it was written
    as_of: float
    slices: Sequence[Slice]
    contents: Mapping[str, str] = field(default_factory=dict)  # of each variant that the census saw
    census: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> ArticleBatch:
        """As a store has kept it."""
        return cls(**{**row, "slices": [Slice.of(one) for one in row["slices"]]})


class Member(NamedTuple):
    """Somebody who may be in an article's audience."""

    email: str
    from_name: str | None
    ocd_ids: Sequence[str]


class IntakeStore(Requests, Subscribers, PageStore, Protocol):
    """What intake reads and writes: of articles, slices and the batches that are made of them."""

    def import_slices(self, slices: Sequence[Slice]) -> SliceCounts:
        """Each into its place; what has not changed is left alone."""

    def enqueue_article(self, new: NewMailout, batch: ArticleBatch) -> Mailout:
        """Write it down with who asked for it (`campaign_runs`), or find it: then nothing changes."""

    def members(
        self,
        *,
        after: str = "",
        limit: int,
        list_key: str,
        segment: Tree | None = None,
        existed_at: float | None = None,
        snoozed: bool = False,
    ) -> Sequence[Member]:
        """Active subscribers on a list whom a segment means, by address, one page; who asked for a pause is
        not among them. `snoozed`: those alone."""
