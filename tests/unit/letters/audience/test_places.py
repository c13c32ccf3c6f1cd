"""Whom a filter means."""

from __future__ import annotations

import pytest

from mailout.letters.audience.places import FilterError, read_filter, slug
from mailout.letters.audience.segment_tree import equal_to
from tests.segment_meaning import Person, matches

OHIO = "ocd-division/country:us/state:oh"


@pytest.mark.parametrize(
    ("written", "ocd_ids", "admitted"),
    [
        ({}, [], True),
        ({"state": "OH"}, [OHIO], True),
        ({"state": "oh"}, [f"{OHIO}/cd:3"], True),
        ({"state": "OH"}, ["ocd-division/country:us/state:oha"], False),
        ({"state": "OH"}, [], False),
        ({"state": "DC"}, ["ocd-division/country:us/district:dc"], True),
        ({"state": "PR"}, ["ocd-division/country:us/territory:pr"], True),
        ({"state": "OH", "county": "Franklin County"}, [f"{OHIO}/county:franklin"], True),
        ({"state": "OH", "county": "Franklin"}, [f"{OHIO}/county:franklin_east"], False),
        ({"state": "IN", "county": "Franklin"}, [f"{OHIO}/county:franklin"], False),
        ({"state": "OH", "place": "Upper Arlington"}, [f"{OHIO}/place:upper_arlington"], True),
        (
            {"state": "OH", "place": "Upper Arlington"},
            [f"{OHIO}/county:franklin/place:upper_arlington"],
            True,
        ),
        ({"state": "OH", "county": "Franklin", "place": "Bexley"}, [f"{OHIO}/place:bexley"], False),
        (
            {"state": "OH", "county": "Franklin", "place": "Bexley"},
            [f"{OHIO}/county:franklin", f"{OHIO}/place:bexley"],
            True,
        ),
    ],
)
def test_places(written: dict[str, str], ocd_ids: list[str], admitted: bool) -> None:
    found = read_filter(written, lambda attribute: False, lambda tree: tree).segment
    person = Person(email="ann@example.org", joined="2026-01-31", places=ocd_ids)
    assert (found is None or matches(found, person)) is admitted


@pytest.mark.parametrize(
    ("name", "as_ocd_has_it"),
    [
        ("Upper Arlington", "upper_arlington"),
        ("Prince George's", "prince_george~s"),
        ("St. Louis", "st_louis"),
        ("Winston-Salem", "winston-salem"),
        ("Cañon City", "cañon_city"),
    ],
)
def test_names_become_slugs(name: str, as_ocd_has_it: str) -> None:
    assert slug(name) == as_ocd_has_it


def test_a_list_and_an_attribute_are_kept_apart() -> None:
    found = read_filter(
        {"list": "events", "plan": "Gold"}, lambda attribute: attribute == "plan", lambda tree: tree
    )
    assert (found.list_key, found.segment) == ("events", ["and", equal_to("plan", "gold")])
    assert read_filter({}, lambda attribute: False, lambda tree: tree).list_key == "general"


def test_a_filter_of_an_article_speaks_the_language_of_segments_beside_the_old_forms() -> None:
    found = read_filter(
        {"state": "OH", "filter": "in list a or in list b"}, lambda attribute: False, lambda tree: tree
    )
    assert found.list_key == "general"
    assert found.segment == ["and", ["place", OHIO, ""], ["or", ["list", "a"], ["list", "b"]]]


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ({"colour": "red"}, "colour"),
        ({"county": "Franklin"}, "county"),
        ({"place": "Bexley"}, "place"),
        ({"state": "Ohio"}, "state"),
        ({"state": " "}, "state"),
        ({"filter": "city ="}, "filter"),
    ],
)
def test_what_cannot_be_understood_is_refused_by_name(written: dict[str, str], key: str) -> None:
    with pytest.raises(FilterError, match=key) as caught:
        read_filter(written, lambda attribute: False, lambda tree: tree)
    assert caught.value.key == key
