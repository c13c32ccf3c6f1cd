"""Slices: the parts of an article, and the rules by which a recipient's places choose among them.

Everything here is a pure function of the slices, the places and the time; the order in which a store hands
slices over changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
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
        """As a store has kept it."""
        values = {one.name: row[one.name] for one in fields(cls)}
        read = {
            "is_headline": bool(row["is_headline"]),
            "tags": tuple(row["tags"]),
            "publish_status": PublishStatus(row["publish_status"]),
        }
        return cls(**values | read)

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


class Missing(StrEnum):
    """Why somebody gets no article."""

    NO_SLICES = "no_slices"  # none is for their places
    HEADLINE_MISSING = "headline_missing"  # slices there are, but none of them has a title


def slice_id(place: tuple[str, int, str, int]) -> str:
    """Follows from its place, so that an import meets the slice that it replaces."""
    return uuid_of("slice", *map(str, place))


def live(slices: Iterable[Slice], now: float) -> list[Slice]:
    """Those that may be sent now, in the order of the body: section, then broad to narrow."""
    return sorted(
        (one for one in slices if one.is_live(now)),
        key=lambda one: (one.section_order, one.specificity, one.sort_index, one.id),
    )


def assemble(slices: Iterable[Slice], places: Collection[str], now: float) -> Article | Missing:
    """The article for somebody who belongs to these places."""
    return compose([one for one in live(slices, now) if one.is_for(places)])


def compose(chosen: Sequence[Slice]) -> Article | Missing:
    """The article that consists of these live slices, which are in the order of the body."""
    if not chosen:
        return Missing.NO_SLICES
    headline = _headline(chosen)
    if headline is None or not headline.title:
        return Missing.HEADLINE_MISSING
    body = "\n\n".join(part for one in chosen for part in (one.body_md.strip("\n"), _link(one)) if part)
    return Article(headline.title, headline.dek, body, tuple(chosen))


def _headline(chosen: Sequence[Slice]) -> Slice | None:
    """The narrowest one that is marked as headline, else the first that has a title."""
    titled = [one for one in chosen if one.title]
    marked = [one for one in titled if one.is_headline]
    return min(
        marked,
        key=lambda one: (-one.specificity, one.section_order, one.sort_index, one.id),
        default=titled[0] if titled else None,
    )


def _link(one: Slice) -> str:
    """A slice's link stands below it, under its title or, without one, its own address."""
    if not one.link_url:
        return ""
    words = re.sub(r"([\\`*_{}\[\]()#+\-.!|<>~&])", r"\\\1", " ".join((one.title or one.link_url).split()))
    return f"[{words}](<{one.link_url}>)"
