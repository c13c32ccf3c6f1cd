"""The census of an article, for people: which variants there are, for how many, and who is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mailout.insight.reporting.phrases import count

VARIANTS_SHOWN = 50
"""Variants in a table for people; the JSON has all."""


def census_table(census: Mapping[str, Any]) -> list[dict[str, Any]]:
    """For a Prefect table artifact, a terminal, the report: the variants with the most people first."""
    return [
        {
            "recipients": one["recipients"],
            "bytes": one["html_bytes"],
            "over 102 KB": "yes" if one["over_102_kb"] else "",
            "subject": one["title"],
            "slices": ", ".join(one["slices"]),
        }
        for one in census["variants"][:VARIANTS_SHOWN]
    ]


def census_lines(census: Mapping[str, Any]) -> Sequence[str]:
    """A few sentences."""
    variants = census["variants"]
    lines = [f"{count(census['recipients'], 'person', 'people')} in {count(len(variants), 'variant')}."]
    if census["no_slices"]:
        lines.append(f"{count(census['no_slices'], 'person', 'people')} skipped: no slice is for them.")
    if snoozed := census.get("snoozed"):
        lines.append(f"{count(snoozed, 'person', 'people')} skipped: they asked for a pause.")
    for scope, place in census.get("nearest", {}).items():
        lines.append(f"Nobody belongs to {scope}. The nearest place of somebody is {place}.")
    if census["headline_missing"]:
        people = count(census["headline_missing"], "person", "people")
        lines.append(f"{people} with slices that have no title: see the subject (headline_missing).")
    if clipped := [one for one in variants if one["over_102_kb"]]:
        people = count(sum(one["recipients"] for one in clipped), "person", "people")
        lines.append(f"{count(len(clipped), 'variant')} for {people} over 102 KB: Gmail cuts them off.")
    if len(variants) > VARIANTS_SHOWN:
        lines.append(f"The table shows the {VARIANTS_SHOWN} with the most people.")
    return lines
