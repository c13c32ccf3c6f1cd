"""Many addresses at once: checked, one row a person, in the order of sending, every dropped row counted.

polars decides nearly all rows by one regular expression; only the odd ones go through Python, one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from mailout.base.addresses import PLAIN, PLAIN_MAX_LENGTH, SPECIAL_USE, TRIM, Dropped, checked
from mailout.letters.audience.port import PRIORITY

STATUSES = tuple(sorted(PRIORITY, key=PRIORITY.__getitem__))
"""Rising: of two, the higher one stands."""

FRAME_ROWS = 100_000  # rows in Python's and polars' hands at a time

STATUS = pl.Enum(STATUSES)
REASON = pl.Enum([reason.value for reason in Dropped])

JOINED = frozenset({"lists", "left_lists", "ocd_ids"})
"""Columns that hold several values, separated by `|`: a merged row has those of all its rows."""

OF_THE_STATUS = frozenset({"bounce_type", "bounce_subtype"})
"""Columns that belong to the status and follow it."""


@dataclass(frozen=True, slots=True)
class Audience:
    """One row a person, by `email_norm`, and how many rows were dropped, by reason."""

    frame: pl.DataFrame
    dropped: Mapping[Dropped, int]


def check(rows: pl.DataFrame) -> pl.DataFrame:
    """The same rows, trimmed, with `email_norm`, or with the `reason` why a row is dropped."""
    rows = rows.with_columns(
        pl.col("email").fill_null("").str.strip_chars(TRIM), pl.col("status").cast(STATUS)
    )
    email_norm, reason = _normalise(rows["email"])
    return rows.with_columns(email_norm=email_norm, reason=reason)


def merge(batches: Iterable[pl.DataFrame]) -> Audience:
    """Checked rows, one batch at least, as one row a person.

    The highest status wins, with its bounce; of all else the first that is not empty stands.
    """
    kept, dropped = [], Counter[Dropped]()
    for batch in batches:
        kept.append(batch.filter(pl.col("reason").is_null()).drop("reason"))
        counts = batch["reason"].drop_nulls().cast(pl.String).value_counts()
        dropped.update({Dropped(reason): count for reason, count in counts.iter_rows()})
    # Sorted, equal ones are neighbours: finding them costs no table of a million addresses.
    rows = pl.concat(kept).sort("email_norm", maintain_order=True)
    kept.clear()
    again = _has_equal_neighbour(rows["email_norm"])
    if again.any():
        rules = [_merge_rule(name, dtype) for name, dtype in rows.schema.items() if name != "email_norm"]
        merged = rows.filter(again).group_by("email_norm", maintain_order=True).agg(rules)
        rows = rows.filter(~again).merge_sorted(merged.select(rows.columns), key="email_norm")
        dropped[Dropped.DUPLICATE] += len(again) - len(rows)
    return Audience(rows, {reason: dropped[reason] for reason in Dropped if dropped[reason]})


def _has_equal_neighbour(ordered: pl.Series) -> pl.Series:
    return (ordered == ordered.shift(1)).fill_null(False) | (ordered == ordered.shift(-1)).fill_null(False)


def _normalise(emails: pl.Series) -> tuple[pl.Series, pl.Series]:
    """`email_norm` and `reason` of trimmed addresses; of the two, each row has one."""
    plain = (
        (emails.str.len_bytes() <= PLAIN_MAX_LENGTH)
        & emails.str.contains(f"^{PLAIN}$")
        & ~emails.str.contains(f"{SPECIAL_USE}$")
    )
    odd = (~plain).arg_true()
    answers = [checked(email) for email in emails.gather(odd)]
    norms = [None if isinstance(answer, Dropped) else answer for answer in answers]
    reasons = [answer.value if isinstance(answer, Dropped) else None for answer in answers]
    nothing = pl.repeat(None, len(emails), dtype=REASON, eager=True)
    return (
        emails.str.to_lowercase().scatter(odd, pl.Series(norms, dtype=pl.String)),
        nothing.scatter(odd, pl.Series(reasons, dtype=REASON)),
    )


def _merge_rule(name: str, dtype: pl.DataType) -> pl.Expr:
    column = pl.col(name)
    if name == "status":
        return column.max()
    if name in JOINED:
        return column.drop_nulls().str.join("|")
    if name in OF_THE_STATUS:
        column = column.filter(pl.col("status") == pl.col("status").max())
    there = column.replace("", None) if dtype == pl.String else column
    return there.drop_nulls().first()
