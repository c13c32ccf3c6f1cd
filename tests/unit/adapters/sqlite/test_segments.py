"""A segment's filter as SQL."""

from __future__ import annotations

from mailout.adapters.sqlite.segments import SegmentCondition
from mailout.letters.audience.segments import read_segment


def test_each_value_is_one_parameter() -> None:
    """A filter of a thousand values had a million, and a second went by before anybody was counted."""
    tree = read_segment(f"city in ({', '.join(f'v{n}' for n in range(1000))}, 7, 2026-11-17)").tree
    condition = SegmentCondition(tree)
    assert len(condition.parameters) == condition.sql.count(":segment_") == 1003
