from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.insight.reporting.plot import NARROW, WIDE, plot, ticks
from mailout.insight.reporting.summary import Timeline
from mailout.outbox.delivery.protocol import Ledger
from tests.unit.insight.reporting.conftest import START
from tests.unit.insight.reporting.scenes import mailout, summary

SVG = "{http://www.w3.org/2000/svg}"
COUNTS = st.integers(0, 2_000_000)


def drawn(width: int = WIDE, **changes: Any) -> ElementTree.Element:
    return ElementTree.fromstring(plot(summary(**changes), width=width))  # noqa: S314 (our own)


def words(svg: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in svg.iter(f"{SVG}text")]


def test_it_says_in_words_what_it_shows() -> None:
    """Whoever cannot see the picture gets its numbers."""
    svg = drawn()
    assert svg.get("role") == "img"
    ids = {element.get("id") for element in svg.iter()}
    assert set((svg.get("aria-labelledby") or "").split()) <= ids
    assert "290 sent, 6 failed, 2 unknown, 2 suppressed" in (svg.findtext(f"{SVG}desc") or "")


def test_the_same_summary_is_the_same_picture() -> None:
    assert plot(summary()) == plot(summary())


def test_the_line_rises_from_nothing_to_all() -> None:
    (line,) = drawn().iter(f"{SVG}polyline")
    heights = [float(point.split(",")[1]) for point in (line.get("points") or "").split()]
    assert heights == sorted(heights, reverse=True)  # y grows downwards
    assert heights[0] > heights[-1]


@pytest.mark.parametrize(
    ("timeline", "says"),
    [
        (None, "Nothing has been sent yet"),
        (Timeline(START, START, (290,)), "290 sent at 09:00:00"),
    ],
)
def test_without_a_course_it_says_so_instead_of_drawing_nothing(timeline: Timeline | None, says: str) -> None:
    svg = drawn(timeline=timeline)
    assert says in words(svg)
    assert list(svg.iter(f"{SVG}polyline")) == []


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, st.sampled_from([WIDE, NARROW]))
def test_every_share_is_seen_and_nothing_leaves_the_picture(
    pending: int, in_flight: int, sent: int, failed: int, suppressed: int, unknown: int, width: int
) -> None:
    """One failure among two million is still a mark, and the legend names it."""
    numbers = (pending, in_flight, sent, failed, suppressed, unknown)
    svg = drawn(width, of=mailout(ledger=Ledger(sum(numbers), *numbers)))
    bars = [rect for rect in svg.iter(f"{SVG}rect") if rect.get("height") == "14.0"]
    assert len(bars) == sum(1 for number in numbers if number)
    for bar in bars:
        assert float(bar.get("width") or 0) >= 1
        assert float(bar.get("x") or 0) + float(bar.get("width") or 0) <= width
    if bars:
        assert float(bars[-1].get("x") or 0) + float(bars[-1].get("width") or 0) > width - 20
    if failed:
        assert f"failed {failed:,}" in words(svg)
    for text in svg.iter(f"{SVG}text"):
        assert 0 <= float(text.get("y") or -1) <= float(svg.get("height") or 0)


@given(st.integers(0, 10**9))
def test_the_scale_reaches_the_highest_in_a_few_round_steps(highest: int) -> None:
    steps = ticks(highest)
    assert steps[0] == 0
    assert steps[-1] >= highest
    assert 2 <= len(steps) <= 6
    assert str(steps[1]).rstrip("0") in {"1", "2", "5"}
