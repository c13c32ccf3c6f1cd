"""Slices: the parts of an article, and the rules by which a recipient's places choose among them.

Everything here is a pure function of the slices, the places and the time; the order in which a store hands
slices over changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mailout.base.ids import uuid_of


class PublishStatus(StrEnum):
    """Whether a slice may be sent."""

    DRAFT = "draft"  # not yet
    PUBLISHED = "published"  # between its two times, if it has any
    ARCHIVED = "archived"  # no longer


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One part of an article. Times are seconds since the epoch."""

    article_key: str
    section_order: int
    is_headline: bool = False
    title: str | None = None
    dek: str | None = None  # the line below the title
    body_md: str = ""
    link_url: str | None = None
    scope_ocd_id: str | None = None  # None: for everybody
    tags: tuple[str, ...] = ()
    publish_status: PublishStatus = PublishStatus.DRAFT
    publish_at: float | None = None
    expires_at: float | None = None
    sort_index: int = 0
    id: str = ""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Slice:
        """As a batch has kept it."""
        status = PublishStatus(row["publish_status"])
        return cls(**{**row, "tags": tuple(row["tags"]), "publish_status": status})

    @property
    def place(self) -> tuple[str, int, str, int]:
        """What makes it this slice and no other: another one in the same place replaces it."""
        return self.article_key, self.section_order, self.scope_ocd_id or "", self.sort_index

    @property
    def specificity(self) -> int:
        """Scopes nest by `/`, so the longer one is the narrower; everywhere is 0."""
        return len(self.scope_ocd_id or "")

    def is_live(self, now: float) -> bool:
        return (
            self.publish_status is PublishStatus.PUBLISHED
            and (self.publish_at is None or self.publish_at <= now)
            and (self.expires_at is None or now < self.expires_at)
        )

    def is_for(self, places: Collection[str]) -> bool:
        return self.scope_ocd_id is None or self.scope_ocd_id in places


@dataclass(frozen=True, slots=True)
class Article:
    """What one recipient, and everybody with the same slices, is sent."""

    title: str
    dek: str | None
    body: str  # Markdown, one block
    slices: tuple[Slice, ...]  # in the order of the body
    has_title: bool = True  # False: no slice has one, so a dek or the article's key stands for it


def slice_id(place: tuple[str, int, str, int]) -> str:
    """Follows from its place, so that an import meets the slice that it replaces."""
    return uuid_of("slice", *map(str, place))


def live(slices: Iterable[Slice], now: float) -> list[Slice]:
    """Those that may be sent now, in the order of the body: section, then broad to narrow."""
    return sorted(
        (one for one in slices if one.is_live(now)),
        key=lambda one: (one.section_order, one.specificity, one.sort_index, one.id),
    )


def assemble(slices: Iterable[Slice], places: Collection[str], now: float) -> Article | None:
    """The article for somebody who belongs to these places; None: no slice is for them."""
    return compose([one for one in live(slices, now) if one.is_for(places)])


def compose(chosen: Sequence[Slice]) -> Article | None:
    """The article that consists of these live slices, which are in the order of the body.

    Who has slices gets them: without a title the headline's dek is the subject, and without a dek the key.
    """
    if not chosen:
        return None
    body = "\n\n".join(part for one in chosen for part in (one.body_md.strip("\n"), _link(one)) if part)
    headline = _headline(chosen)
    title = headline and (headline.title or headline.dek)
    deks = [one.dek for one in (headline, *chosen) if one and one.dek and one.dek != title]
    return Article(
        title or chosen[0].article_key.replace("-", " ").capitalize(),
        deks[0] if deks else None,
        body,
        tuple(chosen),
        has_title=bool(headline and headline.title),
    )


def _headline(chosen: Sequence[Slice]) -> Slice | None:
    """The narrowest one that is marked as headline, else the first; it has a title or at least a dek."""
    worded = [one for one in chosen if one.title or one.dek]
    marked = [one for one in worded if one.is_headline]
    return min(
        marked,
        key=lambda one: (-one.specificity, one.section_order, one.sort_index, one.id),
        default=worded[0] if worded else None,
    )


def _link(one: Slice) -> str:
    """A slice's link stands below it, under its title or, without one, its own address."""
    if not one.link_url:
        return ""
    words = re.sub(r"([\\`*_{}\[\]()#+\-.!|<>~&])", r"\\\1", " ".join((one.title or one.link_url).split()))
    return f"[{words}](<{one.link_url}>)"
