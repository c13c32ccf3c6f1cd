"""The census of an article: how many people would get which variant, before anything is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from mailout.content.checks import GMAIL_CLIPS
from mailout.content.model import Content
from mailout.content.slices import Article, Missing
from mailout.error_log import ErrorRecord


@dataclass(frozen=True, slots=True)
class VariantCount:
    """One variant in the census."""

    key: str
    recipients: int
    title: str
    html_bytes: int
    content_hash: str
    slices: Sequence[str]  # section and scope of each, in the order of the body

    @property
    def is_clipped(self) -> bool:
        return self.html_bytes > GMAIL_CLIPS


@dataclass(frozen=True, slots=True)
class Census:
    """Who would get what, before anything is sent."""

    article_key: str
    audience: Mapping[str, str]
    variants: Sequence[VariantCount]  # the one with the most recipients first
    no_slices: int  # people who match nothing: they are skipped
    headline_missing: int  # people whose slices have no title: they are skipped, too

    @property
    def recipients(self) -> int:
        return sum(variant.recipients for variant in self.variants)

    def to_dict(self) -> dict[str, object]:
        return {
            "article_key": self.article_key,
            "audience_filter": dict(self.audience),
            "recipients": self.recipients,
            "variants": [asdict(one) | {"over_102_kb": one.is_clipped} for one in self.variants],
            "no_slices": self.no_slices,
            "headline_missing": self.headline_missing,
        }


def counted(key: str, recipients: int, article: Article, content: Content) -> VariantCount:
    places = [f"{one.section_order} {one.scope_ocd_id or 'everywhere'}" for one in article.slices]
    return VariantCount(key, recipients, content.subject, len(content.html.encode()), content.hash, places)


def problems(census: Census, id: str) -> Iterator[ErrorRecord]:
    if census.headline_missing:
        message = f"{census.headline_missing} people are skipped: none of their slices has a title."
        yield ErrorRecord(Missing.HEADLINE_MISSING, message, "content", mailout=id)
    if clipped := [one for one in census.variants if one.is_clipped]:
        people = sum(one.recipients for one in clipped)
        message = f"{len(clipped)} variants for {people} people are over 102 KB: Gmail cuts them off."
        yield ErrorRecord("html_clipped", message, "content", mailout=id)
