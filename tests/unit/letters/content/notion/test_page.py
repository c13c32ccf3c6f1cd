"""A page's properties: what is read from them, and what may be written into them."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.letters.content.notion.page import PROPERTY_NAMES, holds, page_of, property_value, text_items
from tests.stubs.notion_pages import Json, rich

ID = "0f0e0d0c-0b0a-4908-8706-050403020100"


def page(**properties: Json) -> Json:
    return {"id": ID.replace("-", ""), "url": "https://www.notion.so/x", "properties": properties}


def test_values_are_often_null_and_properties_often_missing() -> None:
    """A half-filled database must end in a clear message, not in a stack trace."""
    read = page_of(
        page(
            subject={"type": "title", "title": []},
            status={"type": "status", "status": None},
            is_test={"type": "checkbox", "checkbox": None},
            sent_at={"type": "date", "date": None},
        ),
        PROPERTY_NAMES,
    )
    assert (read.id, read.subject, read.status) == (ID, "", None)
    assert (read.is_test, read.sent_at, read.send_at, read.list) == (False, None, None, None)


def test_the_title_is_the_subject_whatever_it_is_called() -> None:
    read = page_of(page(Name={"type": "title", "title": rich("Hello\nthere")}))
    assert read.subject == "Hello there"


def test_a_subject_carries_none_of_our_marks() -> None:
    read = page_of(page(subject={"type": "title", "title": rich("a\ue000email\ue001b")}))
    assert read.subject == "aemailb"


@pytest.mark.parametrize(
    ("start", "moment"),
    [
        ("2026-11-15", 1_794_697_200.0),
        ("2026-11-15T00:00:00.000+00:00", 1_794_700_800.0),
        ("2026-11-15T00:00:00.000Z", 1_794_700_800.0),
        ("2026-11-15T01:00:00.000+01:00", 1_794_700_800.0),
        ("2026-11-15T01:00:00.000", 1_794_700_800.0),
        ("tomorrow", None),
    ],
)
def test_a_day_begins_at_midnight_where_the_sender_is(start: str, moment: float | None) -> None:
    """A letter dated Sunday must not leave on Saturday evening."""
    read = page_of(
        page(send_at={"type": "date", "date": {"start": start}}), PROPERTY_NAMES, ZoneInfo("Europe/Berlin")
    )
    assert read.send_at == moment


@pytest.mark.parametrize("start", ["9999-12-31", "9999-12-31T22:00:00-05:00", "3000-01-02", "tomorrow"])
def test_a_time_that_cannot_be_meant_is_refused_by_name(start: str) -> None:
    """9999 broke every page that shows the queue; and taken for empty, it would be sent at once."""
    read = page_of(page(send_at={"type": "date", "date": {"start": start}}))
    assert "send_at" in read.unreadable
    assert start in read.unreadable
    assert not page_of(page(send_at={"type": "date", "date": {"start": "2999-01-01"}})).unreadable
    assert not page_of(page(send_at={"type": "date", "date": None})).unreadable


def test_a_list_is_a_select_or_a_text() -> None:
    names = {**PROPERTY_NAMES, "list": "Audience"}
    assert page_of(page(Audience={"type": "select", "select": {"name": "news"}}), names).list == "news"
    assert page_of(page(Audience={"type": "rich_text", "rich_text": rich(" news ")}), names).list == "news"


@pytest.mark.parametrize("kind", ["formula", "rollup", "relation", "people", "None", ""])
def test_a_property_that_nobody_can_write_takes_nothing(kind: str) -> None:
    assert property_value(kind, "x") is None


def test_words_do_not_fit_into_a_number() -> None:
    assert property_value("number", "many") is None


@given(st.text(max_size=60).map(lambda some: some * 90))
def test_text_arrives_whole_in_pieces_that_notion_accepts(text: str) -> None:
    pieces = [item["text"]["content"] for item in text_items(text)]
    assert "".join(pieces) == text
    assert all(0 < len(piece.encode("utf-16-le", "surrogatepass")) <= 4_000 for piece in pieces)


@pytest.mark.parametrize(
    ("property", "value", "known"),
    [
        ({"type": "status", "status": {"name": "Send", "color": "green"}}, "Send", True),
        ({"type": "select", "select": {"name": "Draft"}}, "Send", False),
        ({"type": "status", "status": None}, "Send", False),
        ({"type": "number", "number": 3}, 3, True),
        ({"type": "number", "number": None}, 0, False),
        ({"type": "date", "date": {"start": "2026-11-15T00:00:00.000+00:00"}}, 1_794_700_800.7, True),
        ({"type": "date", "date": {"start": "2026-11-15"}}, 1_794_700_801.0, False),
        ({"type": "date", "date": None}, None, False),
        (None, 3, False),
    ],
)
def test_what_a_page_says_already_need_not_be_written(property: Json | None, value: Any, known: bool) -> None:
    """A page that is written every minute is edited every minute, for everybody who watches it."""
    assert holds(property, value) is known
