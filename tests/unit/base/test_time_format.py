from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.base.time_format import clock_time, iso, lasting, spoken
from tests.unit.insight.reporting.conftest import START


@given(st.integers(0, 4_000_000_000_000))
def test_iso_reads_back_to_the_millisecond(milliseconds: int) -> None:
    text = iso(milliseconds / 1000)
    assert text is not None
    assert text.endswith("Z")
    assert datetime.fromisoformat(text).timestamp() == pytest.approx(milliseconds / 1000, abs=0.0011)


def test_no_moment_has_no_text() -> None:
    assert iso(None) is None


def test_a_moment_is_told_on_the_readers_clock() -> None:
    assert spoken(START, UTC) == "15 Nov 2026 09:00 UTC"
    assert spoken(START, ZoneInfo("America/Sao_Paulo")) == "15 Nov 2026 06:00 -03"


def test_a_moment_after_the_last_year_is_told_all_the_same() -> None:
    late = 253_402_300_800.0 + 86_400
    assert spoken(late, ZoneInfo("Pacific/Kiritimati")).startswith("30 Dec 9999")
    assert iso(late) == "9999-12-30T00:00:00.000Z"


def test_an_axis_is_no_finer_than_it_needs_to_be() -> None:
    assert [clock_time(START, UTC, span) for span in (10, 3600, 200_000)] == [
        "09:00:00",
        "09:00",
        "15 Nov 09:00",
    ]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-1, "0.0 s"),
        (0.42, "0.4 s"),
        (42, "42 s"),
        (60, "1 min"),
        (894, "14 min 54 s"),
        (3_900, "1 h 5 min"),
        (90_000, "1 d 1 h"),
    ],
)
def test_a_span_is_told_in_its_two_largest_units(seconds: float, said: str) -> None:
    assert lasting(seconds) == said
