"""The language of segments: what is read as what, and what is refused with words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.letters.audience.segment_tree import (
    SegmentError,
    Tree,
    day_of,
    fold,
    hash_of,
    lists_of,
    number_of,
    whole,
)
from mailout.letters.audience.segments import MOST_CONDITIONS, read_segment
from tests.segment_meaning import Person, matches, text_of


def text(value: str) -> list[str]:
    return ["text", value]


@pytest.mark.parametrize(
    ("written", "tree"),
    [
        ('city = "Porto"', ["compare", "city", "in", [text("porto")]]),
        ("city=Porto", ["compare", "city", "in", [text("porto")]]),
        ("city != Porto", ["not", ["compare", "city", "in", [text("porto")]]]),
        ("age >= 30", ["compare", "age", ">=", [["number", "30"]]]),
        ('zip = "01234"', ["compare", "zip", "in", [text("01234")]]),
        ("born after 1999-12-31", ["compare", "born", ">", [["day", "1999-12-31"]]]),
        ("born before 1999-12-31", ["compare", "born", "<", [["day", "1999-12-31"]]]),
        ("title CONTAINS Chair", ["compare", "title", "contains", [text("chair")]]),
        ("x contains 5", ["compare", "x", "contains", [text("5")]]),
        ('city in (a, "b c", 3)', ["compare", "city", "in", [text("a"), text("b c"), ["number", "3"]]]),
        ('"my field" = “quoted so”', ["compare", "my field", "in", [text("quoted so")]]),
        ("x = 'a b'", ["compare", "x", "in", [text("a b")]]),
        ("x = ‘01’", ["compare", "x", "in", [text("01")]]),
        ("x in ('a','b c')", ["compare", "x", "in", [text("a"), text("b c")]]),
        ("x in („a b“, „c”, «d», »e«, ‚f‘)", ["compare", "x", "in", [text(one) for one in ["a b", *"cdef"]]]),
        (
            "'my field'!='a' and has b",
            ["and", ["not", ["compare", "my field", "in", [text("a")]]], ["has", "b"]],
        ),
        ("""x = "'a'" """, ["compare", "x", "in", [text("'a'")]]),
        (
            "name = O'Brien or name = D’Arcy",
            ["or", *(["compare", "name", "in", [text(one)]] for one in ("o'brien", "d’arcy"))],
        ),
        (r'x = "a \"b\" \\ c"', ["compare", "x", "in", [text(r'a "b" \ c')]]),
        ("has x", ["has", "x"]),
        ("in list a or in list b", ["or", ["list", "a"], ["list", "b"]]),
        ("in place OCD-Division/country:us", ["place", "ocd-division/country:us", ""]),
        ('got "a b"', ["got", "a b"]),
        ("clicked spring-letter", ["clicked", "spring-letter"]),
        ("never mailed", ["not", ["mailed"]]),
        ("not has a and has b or has c", ["or", ["and", ["not", ["has", "a"]], ["has", "b"]], ["has", "c"]]),
        ("not (has a or has b)", ["not", ["or", ["has", "a"], ["has", "b"]]]),
        ("has a\nand has b", ["and", ["has", "a"], ["has", "b"]]),
        # What is a word of the language elsewhere may be a name or a value where one is meant.
        ("list = in", ["compare", "list", "in", [text("in")]]),
        ("order = and", ["compare", "order", "in", [text("and")]]),
        ("android = 1", ["compare", "android", "in", [["number", "1"]]]),
        ("Город = Порту", ["compare", "Город", "in", [text("порту")]]),
    ],
)
def test_what_is_written_is_read_so(written: str, tree: Tree) -> None:
    assert read_segment(written).tree == tree


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "empty"),
        ("city =", "ends too early"),
        ("(has a", "ends too early"),
        ("has a)", "from character 6 on: )"),
        ("city Porto", "from character 6 on: Porto"),
        ("has a; drop table subscribers", "from character 8 on: drop table"),
        ('city = ""', "compared with nothing"),
        ('city = " "', "compared with nothing"),
        ("born before yesterday", "`before` needs a day"),
        ('born after "2026-01-01"', "without quotes"),
        ("born = 2026-02-30", "no day of the calendar"),
        ("joined > 5", "`joined` is a day"),
        ("joined contains 2026", "`joined` is a day"),
        ("city 'Porto'", "from character 6 on: 'Porto'"),
        ("city = 's-Hertogenbosch", "quotation marks cannot be read: 's-Hertogenbosch"),
        ("has x and city = Porto' or has y", "quotation marks cannot be read: Porto' or"),
        ("name = 'O'Brien'", "quotation marks cannot be read: 'O'Brien'"),
        ("a = 'b'and c = 'd'", "quotation marks cannot be read: 'b'and"),
        ("city = “Porto", "quotation marks cannot be read: “Porto"),
        ("city = `Porto`", "quotation marks cannot be read: `Porto`"),
        ("city = ''", "compared with nothing"),
        ("born after '2026-01-01'", "without quotes"),
        ("a" * 10_001, "10,000 are the most"),
        ("not " * 30 + "has a", "nested more than"),
        (" or ".join(["has a"] * (MOST_CONDITIONS + 1)), "200 are the most"),
        ('x = "a\0b"', "control character"),
        ('x = "\ud800"', "control character"),
    ],
)
def test_what_cannot_be_read_is_refused_with_where_and_what_to_do(written: str, said: str) -> None:
    with pytest.raises(SegmentError) as caught:
        read_segment(written)
    assert said in str(caught.value)
    assert caught.value.remedy


def test_ten_thousand_parentheses_exhaust_nothing() -> None:
    assert read_segment("(" * 4000 + "has a" + ")" * 4000).tree == ["has", "a"]
    with pytest.raises(SegmentError):
        read_segment("(" * 9000 + "has a")


@given(st.text(max_size=60))
def test_whatever_is_typed_is_read_or_refused(written: str) -> None:
    try:
        tree = read_segment(written).tree
    except SegmentError:
        return
    assert isinstance(matches(tree, Person(email="a@example.org", joined="2026-01-01")), bool)


def test_a_spelling_makes_no_other_filter() -> None:
    one, other = (read_segment(text).tree for text in ("city=PORTO and(has x)", 'city = "porto"  AND has x'))
    assert hash_of(one) == hash_of(other)
    assert hash_of(one) != hash_of(read_segment("city=porto or has x").tree)


@pytest.mark.parametrize(
    ("written", "lists"),
    [
        ("in list a or in list b", ["a", "b"]),
        ("in list a and not in list b", ["a"]),
        ("not (has x or not in list c)", ["c"]),
        ("has x", []),
    ],
)
def test_only_lists_that_are_asked_for_are_reached_without_general(written: str, lists: list[str]) -> None:
    tree = read_segment(written).tree
    assert lists_of(tree) == lists
    assert whole(None, tree) == ["or", ["list", "general"], *(["list", key] for key in lists)]
    assert whole("weekly", tree) is None


@pytest.mark.parametrize(
    ("value", "known"),
    [
        (" Porto ", "Porto"),
        ("", None),
        (" \t\n", None),
        (None, None),
        ([], None),
        (["Porto"], None),
        ({"a": 1}, None),
        (True, "true"),
        (0, "0"),
        (2.5, "2.5"),
        (1e-5, "0.00001"),
    ],
)
def test_an_attribute_is_text_a_number_or_a_truth_value_and_else_blank(value: Any, known: str | None) -> None:
    assert text_of(value) == known


@pytest.mark.parametrize(
    "written", ["city = Porto", "city != Porto", "not city = Porto", "city > -1", "city < 9"]
)
def test_a_blank_matches_nothing_but_not_has(written: str) -> None:
    blanks: tuple[Any, ...] = ("", " ", None, [])
    for city in blanks:
        nobody = Person(email="a@example.org", joined="2026-01-01", attributes={"city": city})
        assert not matches(read_segment(written).tree, nobody)
        assert matches(read_segment("not has city").tree, nobody)


@pytest.mark.parametrize("written", ['age < "65"', "age >= sixty", 'age > "2026-01-31"', "age <= x"])
def test_what_is_neither_a_number_nor_a_day_is_not_compared(written: str) -> None:
    """As text 100 comes before 65: the wrong people would get a letter."""
    with pytest.raises(SegmentError, match="compares numbers and days") as caught:
        read_segment(written)
    assert "without quotes" in (caught.value.remedy or "")


def test_numbers_days_and_text_are_told_apart() -> None:
    assert (number_of("05"), number_of("-2.50"), number_of("1e3"), number_of("1" * 16)) == (
        5.0,
        -2.5,
        None,
        None,
    )
    assert (day_of("2026-01-31T10:00Z"), day_of("2026-01-311"), day_of("31.1.2026")) == (
        "2026-01-31",
        None,
        None,
    )
    assert {fold("ΟΔΟΣ"), fold("οδος"), fold("οδοσ")} == {"οδοσ"}
    assert fold("İSTANBUL") == fold("istanbul")
