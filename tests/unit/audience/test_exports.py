"""Other products' exports: everybody who wants mail is found, and nobody who does not becomes active."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailout.audience import export_words as words
from mailout.audience.csv_import import Choices, read_subscribers
from mailout.audience.marks import Meaning
from mailout.errors import UsageError
from tests.unit.audience.exports import EXPORTS, Export


@pytest.mark.parametrize("export", EXPORTS, ids=lambda export: export.product)
def test_an_export_is_understood(tmp_path: Path, export: Export) -> None:
    path = tmp_path / export.file
    path.write_bytes(export.text.encode(export.encoding))
    found = read_subscribers(path)
    people: dict[str, set[str]] = {"active": set(), "unsubscribed": set(), "bounced": set()}
    for row in (row for batch in found.batches() for row in batch):
        people[row.status].add(row.email.partition("@")[0])
    assert people == {
        "active": set(export.active.split()),
        "unsubscribed": set(export.gone.split()),
        "bounced": set(export.bounced.split()),
    }
    assert sum(found.plan.left_out.values()) == export.out
    recognised = {one.column: one.field for one in found.plan.columns}
    assert recognised == recognised | export.fields
