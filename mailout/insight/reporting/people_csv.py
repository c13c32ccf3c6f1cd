"""People as CSV, in the form that `import` reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mailout.base.time_format import iso
from mailout.insight.reporting.rows import as_csv, safe
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
    yield from as_csv([(*COLUMNS, *map(safe, attributes))])
    yield from as_csv(_line(row, attributes) for row in read())


def _line(row: Subscriber, attributes: Sequence[str]) -> Iterator[str]:
    known = row | {"snoozed_until": iso(row["snoozed_until"])}
    values = (row["attributes"].get(name) for name in attributes)
    return map(_cell, (*(known.get(name) for name in COLUMNS), *values))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return safe("|".join(value) if isinstance(value, list | tuple) else str(value))
