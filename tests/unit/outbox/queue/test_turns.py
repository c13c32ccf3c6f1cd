"""Whose turn it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mailout.letters.content.port import Kind
from mailout.outbox.queue.mailout import Mailout
from mailout.outbox.queue.turns import in_turn, next_turn


def one(id: str, company: str = "acme", priority: int = 0, asked: float = 0.0) -> Mailout:
    return Mailout(id=id, kind=Kind.MARKDOWN, ref=id, company_id=company, priority=priority, created_at=asked)


def test_the_urgent_goes_before_everybody() -> None:
    waiting = [one("old", asked=1), one("urgent", priority=5, asked=9)]
    assert next_turn(waiting, {"acme": 100.0}) is waiting[1]


def test_the_company_that_sent_longest_ago_goes_first() -> None:
    """Else one company with many mailouts would keep all others waiting."""
    waiting = [one("a", "acme", asked=1), one("z", "zoo", asked=9), one("n", "new", asked=10)]
    assert [m.id for m in in_turn(waiting, {"acme": 200.0, "zoo": 100.0})] == ["n", "z", "a"]


def test_companies_alternate_and_within_one_the_oldest_goes() -> None:
    waiting = [
        one("a2", "a", asked=2),
        one("a1", "a", asked=1),
        one("a3", "a", asked=3),
        one("b1", "b", asked=9),
    ]
    assert [m.id for m in in_turn(waiting, {})] == ["a1", "b1", "a2", "a3"]


def test_nobody_waits_nobody_goes() -> None:
    assert next_turn([], {}) is None


mailouts = st.lists(
    st.builds(
        one,
        st.uuids().map(str),
        st.sampled_from(["a", "b", "c"]),
        st.integers(0, 2),
        st.floats(0, 1e9),
    ),
    unique_by=lambda m: m.id,
)


@given(mailouts, st.dictionaries(st.sampled_from(["a", "b", "c"]), st.floats(0, 1e9)))
def test_everybody_has_a_turn_and_nobody_two(waiting: list[Mailout], last: dict[str, float]) -> None:
    ordered = in_turn(waiting, last)
    assert sorted(m.id for m in ordered) == sorted(m.id for m in waiting)
    assert [m.priority for m in ordered] == sorted((m.priority for m in waiting), reverse=True)
    assert next_turn(waiting, last) == (ordered[0] if ordered else None)
