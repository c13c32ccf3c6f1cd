"""Variants: recipients with the same slices share one content. polars finds out who has which.

The census says how many people would get which variant, before anything is sent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from mailout.base.error_log import ErrorRecord
from mailout.kinds.articles.port import Member
from mailout.letters.content.checks import GMAIL_CLIPS
from mailout.letters.content.document import Problem
from mailout.letters.content.model import Content
from mailout.letters.content.slices import Article, Slice, compose
from mailout.letters.content.variables import as_written

if TYPE_CHECKING:
    import polars as pl

EVERYWHERE = ""
"""The key of who gets only the slices that are for everybody."""
SCOPES_COMPARED = 10
NEAR_ENOUGH = 0.8
"""`difflib`'s ratio: a mistyped id, or one with a level too many."""


class Variants:
    """All variants that live slices (in the order of the body) can make.

    A variant's key names the scopes that it includes, by their place in the sorted list of all scopes.
    """

    def __init__(self, slices: Sequence[Slice]) -> None:
        self._slices = slices
        self._scopes = sorted({one.scope_ocd_id for one in slices if one.scope_ocd_id is not None})

    def keys(self, members: Sequence[Member]) -> pl.Series:
        """Of each member, the key of their variant."""
        import polars as pl  # a quarter of a second: commands that touch no article need not wait for it

        rows = pl.select(row=pl.int_range(len(members), dtype=pl.UInt32))
        counts = pl.Series([len(one.ocd_ids) for one in members], dtype=pl.UInt32)
        flat = list(chain.from_iterable(one.ocd_ids for one in members))  # a Series of lists takes far longer
        places = pl.DataFrame(
            {
                "row": rows["row"].repeat_by(counts).explode(empty_as_null=False),
                "place": pl.Series(flat, dtype=pl.String),
            }
        )
        keys = (
            places.lazy()
            .join(self._numbered.lazy(), on="place")
            .group_by("row")
            .agg(pl.col("scope").unique().sort())
            .with_columns(key=pl.col("scope").cast(pl.List(pl.String)).list.join(" "))
            .select("row", "key")
        )
        found = rows.lazy().join(keys, on="row", how="left", maintain_order="left").collect()
        return found["key"].fill_null(EVERYWHERE)

    def article(self, key: str) -> Article | None:
        """What everybody with this key gets; None: no slice is for them."""
        places = {self._scopes[int(number)] for number in key.split()}
        return compose([one for one in self._slices if one.is_for(places)])

    def nearest(self, places: Collection[str]) -> dict[str, str]:
        """For each scope that is nobody's place, the place that looks most like it: often one is mistyped."""
        unmatched = [scope for scope in self._scopes if scope not in places][:SCOPES_COMPARED]
        return {
            scope: near[0]
            for scope in unmatched
            if (near := get_close_matches(scope, places, n=1, cutoff=NEAR_ENOUGH))
        }

    @cached_property
    def _numbered(self) -> pl.DataFrame:
        import polars as pl

        numbers = pl.Series(range(len(self._scopes)), dtype=pl.UInt32)
        return pl.DataFrame({"place": pl.Series(self._scopes, dtype=pl.String), "scope": numbers})


@dataclass(frozen=True, slots=True)
class VariantCount:
    """One variant in the census."""

    key: str
    recipients: int
    title: str
    html_bytes: int
    content_hash: str
    slices: Sequence[str]  # section and scope of each, in the order of the body
    has_title: bool = True

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
    nearest: Mapping[str, str]  # a scope that nobody has → the most similar place of somebody who is skipped
    snoozed: int = 0  # people who asked for a pause

    @property
    def recipients(self) -> int:
        return sum(variant.recipients for variant in self.variants)

    @property
    def headline_missing(self) -> int:
        """People whose slices have no title: their subject is a dek, or the article's key."""
        return sum(variant.recipients for variant in self.variants if not variant.has_title)

    def to_dict(self) -> dict[str, object]:
        return {
            "article_key": self.article_key,
            "audience_filter": dict(self.audience),
            "recipients": self.recipients,
            "variants": [asdict(one) | {"over_102_kb": one.is_clipped} for one in self.variants],
            "no_slices": self.no_slices,
            "snoozed": self.snoozed,
            "headline_missing": self.headline_missing,
            "nearest": dict(self.nearest),
        }


def counted(key: str, recipients: int, article: Article, content: Content) -> VariantCount:
    places = [f"{one.section_order} {one.scope_ocd_id or 'everywhere'}" for one in article.slices]
    size = len(content.html.encode())
    title = as_written(content.subject)
    return VariantCount(key, recipients, title, size, content.hash, places, article.has_title)


def problems(census: Census, found: Iterable[Problem], id: str) -> Iterator[ErrorRecord]:
    """Of the whole batch, then what was found in its variants, each thing once."""
    if census.headline_missing:
        who = "1 person gets" if census.headline_missing == 1 else f"{census.headline_missing} people get"
        message = f"{who} slices without a title: the subject is a dek, or the article's key."
        yield ErrorRecord("headline_missing", message, "content", mailout=id)
    if clipped := [one for one in census.variants if one.is_clipped]:
        people = sum(one.recipients for one in clipped)
        message = f"{len(clipped)} variants for {people} people are over 102 KB: Gmail cuts them off."
        yield ErrorRecord("html_clipped", message, "content", mailout=id)
    said = dict.fromkeys((one.code, one.message) for one in found if one.code != "html_clipped")
    for code, message in said:
        yield ErrorRecord(code, message, "content", mailout=id)
