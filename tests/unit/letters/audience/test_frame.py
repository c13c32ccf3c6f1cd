"""The audience as a whole: nobody twice, nobody lost, always in the same order, every dropped row counted."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from mailout.base.addresses import Dropped, normalise
from mailout.letters.audience.frame import STATUSES, Audience, check, merge

emails = st.one_of(
    st.none(),
    st.sampled_from(["", "no-at", "a..b@example.org", "é@example.org", "Ana <a@example.org>", "a@b.local"]),
    st.from_regex(r" ?[aAbB]{1,2}@(Example|example)\.(org|ORG|test)\n?", fullmatch=True),
    st.from_regex(r"[ab]@(Bücher|bücher|xn--bcher-kva)\.example", fullmatch=True),
    st.text(max_size=12),
)
statuses = st.sampled_from(STATUSES)
names = st.sampled_from([None, "", "Ana", "Bo"])
tables = st.lists(st.tuples(emails, statuses, names), max_size=25)


def audience_of(rows: pl.DataFrame, batch: int = 100) -> Audience:
    """As a file is read: in parts, each of them checked by itself."""
    return merge(check(part) for part in rows.iter_slices(batch)) if rows.height else merge([check(rows)])


def frame_of(rows: list[tuple[str | None, str, str | None]]) -> pl.DataFrame:
    return pl.DataFrame(
        rows, schema={"email": pl.String, "status": pl.String, "from_name": pl.String}, orient="row"
    )


def one_by_one(rows: list[tuple[str | None, str, str | None]]) -> dict[str, tuple[str, str | None]]:
    """The same rules without polars: a dictionary and a loop."""
    people: dict[str, tuple[str, str | None]] = {}
    for email, status, name in rows:
        norm = normalise(email or "")
        if isinstance(norm, Dropped):
            continue
        before_status, before_name = people.get(norm, ("active", None))
        people[norm] = (max(status, before_status, key=STATUSES.index), before_name or name or None)
    return people


@given(tables)
@settings(deadline=None)
def test_polars_and_a_plain_loop_agree(rows: list[tuple[str | None, str, str | None]]) -> None:
    """Whom polars keeps, with which status and name, is what anybody reading the rules would keep."""
    audience = audience_of(frame_of(rows))
    kept = {
        row["email_norm"]: (row["status"], row["from_name"] or None)
        for row in audience.frame.iter_rows(named=True)
    }
    assert kept == one_by_one(rows)
    assert audience.frame.height + sum(audience.dropped.values()) == len(rows)
    assert audience.frame["email_norm"].to_list() == sorted(kept)  # str and bytes order agree on ASCII


@given(tables, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_rows_changes_neither_who_nor_status_nor_counts(rows: list[Any], random) -> None:
    """A store may page its rows as it likes; the mailout stays the same."""
    shuffled = random.sample(rows, len(rows))
    one, other = audience_of(frame_of(rows)), audience_of(frame_of(shuffled))
    assert one.frame.select("email_norm", "status").equals(other.frame.select("email_norm", "status"))
    assert one.dropped == other.dropped


def test_reasons_are_counted() -> None:
    rows = ["a@example.org", "A@EXAMPLE.ORG", " ", "no-at", "é@example.org", "x@y", "b@example.org"]
    assert audience_of(pl.DataFrame({"email": rows, "status": ["active"] * 7})).dropped == {
        Dropped.EMPTY: 1,
        Dropped.NO_AT: 1,
        Dropped.NON_ASCII_LOCAL: 1,
        Dropped.BAD_DOMAIN: 1,
        Dropped.DUPLICATE: 1,
    }


def test_an_empty_audience_is_an_audience() -> None:
    audience = audience_of(pl.DataFrame(schema={"email": pl.String, "status": pl.String}))
    assert (audience.frame.height, audience.dropped) == (0, {})
    assert {"email", "email_norm", "status"} <= set(audience.frame.columns)


def test_an_audience_can_be_joined_with_another() -> None:
    """Its own frame is a frame of rows again, whose statuses are no longer text."""
    once = audience_of(
        pl.DataFrame({"email": ["a@example.org", "b@example.org"], "status": ["bounced", "active"]})
    )
    assert audience_of(once.frame).frame.equals(once.frame)


def test_duplicates_merge_across_batches() -> None:
    """A large list is read in parts; a person whose rows fall into two of them is still one."""
    rows = pl.DataFrame(
        {
            "email": ["b@example.org", "a@example.org", "c@example.org", "B@example.org", "b@Example.org"],
            "status": ["active", "active", "active", "bounced", "unsubscribed"],
            "from_name": ["", None, None, "First", "Second"],
            "bounce_type": [None, None, None, "Permanent", "Transient"],
            "lists": ["news", None, None, None, "events"],
        }
    )
    audience = audience_of(rows, batch=2)
    assert audience.frame["email_norm"].to_list() == ["a@example.org", "b@example.org", "c@example.org"]
    assert audience.frame.row(1, named=True) == {
        "email": "b@example.org",
        "email_norm": "b@example.org",
        "status": "bounced",
        "from_name": "First",
        "bounce_type": "Permanent",
        "lists": "news|events",
    }
    assert audience.dropped == {Dropped.DUPLICATE: 2}
