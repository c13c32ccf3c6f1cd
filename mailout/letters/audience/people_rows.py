"""Rows of a table with people: one for each address, checked, with its status or why it is not imported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from mailout.base.addresses import TRIM, Dropped
from mailout.letters.audience.frame import REASON, check
from mailout.letters.audience.places import split_places
from mailout.letters.audience.wishes import Meaning

ATTRIBUTE_PREFIX = "attribute "
"""Before the name of a column that is not ours, so that a file's own `line` or `reason` is no trouble."""

NAME = f"{ATTRIBUTE_PREFIX}name"
NAMED = r"^([^<]*\S[^<]*)<[^<>]*@[^<>]*>"
"""An address with a name before it."""

SEVERAL = r"@.*[\s;,|/].*@"
"""Two addresses in one cell, perhaps."""
ONE = r"[^\s<>;,|/\"'()]+@[^\s<>;,|/\"'()]+"

MARKS = TRIM + "\u00ad\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069'\"<>;,"
"""What may stand around an address without being part of it, seen or not."""

BAD_PLACE = "bad_place"
"""Beside `Dropped`: the person is imported, and what stands there as a place is not."""


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that was not imported, or a place of it; `line` is where it ends in the file."""

    line: int
    email: str
    reason: str
    value: str = ""


def checked(rows: pl.DataFrame, rejects: list[Reject]) -> pl.DataFrame:
    """Each address by itself; `rejects` gets the places that are none."""
    return _check(_bare(_apart(_places(rows, rejects))))


def _apart(rows: pl.DataFrame) -> pl.DataFrame:
    """A row for each address: `a@example.org; b@example.org` are two people."""
    several = pl.col("email").str.contains(SEVERAL)
    if not rows.select(several.any()).item():
        return rows
    found = pl.col("email").str.extract_all(ONE).list.unique(maintain_order=True)
    split = pl.when(several & (found.list.len() > 1)).then(found).otherwise(pl.concat_list("email"))
    return rows.with_columns(split).explode("email")


def _bare(rows: pl.DataFrame) -> pl.DataFrame:
    """The addresses of `Ana <ana@example.org>` and `mailto:ana@example.org?subject=Hi`, and the name."""
    odd = (~rows["email"].str.contains(r"^[A-Za-z0-9._%+@-]*$")).arg_true()
    written = rows["email"].gather(odd)
    bare = (
        written.str.replace(r"(?s)^.*<([^<>]*)>[^<>]*$", "$1")
        .str.strip_chars(MARKS)
        .str.replace(r"(?i)^mailto:([^?]*).*$", "$1")
    )
    found = written.str.extract(f"(?s){NAMED}").str.strip_chars(MARKS).fill_null("")
    rows = rows.with_columns(rows["email"].scatter(odd, bare))
    if not (found != "").any():
        return rows
    known = rows[NAME] if NAME in rows.columns else pl.repeat("", rows.height, dtype=pl.String, eager=True)
    before = known.gather(odd)
    return rows.with_columns(known.scatter(odd, before.zip_with(before != "", found)).alias(NAME))


def _places(rows: pl.DataFrame, rejects: list[Reject]) -> pl.DataFrame:
    if "ocd_ids" not in rows.columns:
        return rows
    split = {cell: split_places(cell) for cell in rows["ocd_ids"].unique()}
    bad = [cell for cell, (_, wrong) in split.items() if wrong]
    for line, email, cell in (
        rows.filter(pl.col("ocd_ids").is_in(bad)).select("line", "email", "ocd_ids").iter_rows()
    ):
        rejects.extend(Reject(line, email, BAD_PLACE, wrong) for wrong in split[cell][1])
    joined = {cell: "|".join(good) for cell, (good, _) in split.items()}
    return rows.with_columns(pl.col("ocd_ids").replace_strict(joined, return_dtype=pl.String))


_STATUS = {int(Meaning.UNSUBSCRIBED): "unsubscribed", int(Meaning.BOUNCED): "bounced"}


def _check(rows: pl.DataFrame) -> pl.DataFrame:
    """Checked, with the status that the row's meaning is, or the reason why it goes no further."""
    says = pl.col("meaning")
    checked = check(
        rows.with_columns(
            status=says.replace_strict(_STATUS, default="active", return_dtype=pl.String),
            out=pl.when(says == int(Meaning.LEFT_OUT)).then(pl.lit(Dropped.UNCONFIRMED.value, REASON)),
        )
    )
    # Of a row whose cells have slipped, only that somebody wants no mail is believed.
    slipped = pl.col("ragged") & (pl.col("status") == "active")
    return checked.with_columns(
        reason=pl.when(slipped & pl.col("reason").is_null())
        .then(pl.lit(Dropped.BAD_ROW.value, REASON))
        .otherwise(pl.coalesce("reason", "out"))
    ).drop("ragged", "out", "meaning")


def without_doubt(batches: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """With the same columns. Who is left out by one row does not become active by another."""
    empty = pl.concat([batch.clear() for batch in batches], how="diagonal")
    out = pl.col("reason") == Dropped.UNCONFIRMED.value
    doubted = pl.concat([batch.filter(out)["email_norm"] for batch in batches]).drop_nulls().unique()
    again = pl.col("email_norm").is_in(doubted.implode()) & (pl.col("status") == "active")
    reason = pl.when(again & pl.col("reason").is_null()).then(pl.lit(Dropped.UNCONFIRMED.value, REASON))
    alike = (pl.concat([empty, batch], how="diagonal") for batch in batches)
    return [batch.with_columns(reason=reason.otherwise("reason")) for batch in alike]
