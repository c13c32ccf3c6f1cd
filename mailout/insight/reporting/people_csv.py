"""People as CSV, in the form that `import` reads."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from typing import Any

from mailout.base.time_format import iso
from mailout.insight.reporting.rows import CHUNK_CHARACTERS, safe
from mailout.letters.audience.port import Subscriber

COLUMNS = (
    "email",
    "status",
    "from_name",
    "bounce_type",
    "bounce_subtype",
    "lists",
    "ocd_ids",
    "snoozed_until",
)


def people_lines(read: Callable[[], Iterator[Subscriber]]) -> Iterator[str]:
    """Some lines at a time. They are read twice: the first time for the attributes that any of them has."""
    attributes = sorted({name for row in read() for name in row["attributes"]})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*COLUMNS, *map(safe, attributes)))
    for row in read():
        values = [row["attributes"].get(name) for name in attributes]
        known = row | {"snoozed_until": iso(row["snoozed_until"])}
        writer.writerow(map(_cell, (*(known.get(name) for name in COLUMNS), *values)))
        if text.tell() > CHUNK_CHARACTERS:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return safe("|".join(value) if isinstance(value, list | tuple) else str(value))
