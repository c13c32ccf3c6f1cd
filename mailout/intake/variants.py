"""Variants: recipients with the same slices share one content. polars finds out who has which."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from mailout.content.slices import Article, Missing, Slice, compose
from mailout.intake.port import Member

if TYPE_CHECKING:
    import polars as pl

EVERYWHERE = ""
"""The key of who gets only the slices that are for everybody."""


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

    def article(self, key: str) -> Article | Missing:
        """What everybody with this key gets."""
        places = {self._scopes[int(number)] for number in key.split()}
        return compose([one for one in self._slices if one.is_for(places)])

    @cached_property
    def _numbered(self) -> pl.DataFrame:
        import polars as pl

        numbers = pl.Series(range(len(self._scopes)), dtype=pl.UInt32)
        return pl.DataFrame({"place": pl.Series(self._scopes, dtype=pl.String), "scope": numbers})
