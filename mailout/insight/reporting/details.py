"""The small print of a mailout, as pairs of a label and a text: the same in every report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from mailout.base.time_format import lasting, spoken
from mailout.insight.reporting.phrases import CAME_BACK, count, forecast_text, mode
from mailout.insight.reporting.summary import Summary

VARIANTS_SHOWN = 50
"""Variants in a table for people; the JSON has all."""


def details(summary: Summary, zone: tzinfo) -> Iterator[tuple[str, str]]:
    """Only what there is to say."""
    mailout = summary.mailout
    yield "mode", mode(mailout)
    if mailout.list_key is not None:
        yield "list", mailout.list_key
    if mailout.segment is not None:
        yield "segment", mailout.segment
    if mailout.segment_filter is not None:
        reach = f"{mailout.reach} people: " if mailout.reach else ""
        yield "filter", f"{reach}{mailout.segment_filter['text']}"
    if mailout.started_at is not None and summary.duration is not None:
        yield "started", spoken(mailout.started_at, zone)
        yield ("took" if mailout.completed_at else "so far"), lasting(summary.duration)
    if summary.rate is not None:
        yield "rate", f"{summary.rate:,.1f} messages a second"
    if summary.forecast is not None:
        yield "forecast", forecast_text(summary.forecast, zone)
    if summary.note is not None:
        yield "check", summary.note
    if summary.transport is not None:
        yield "sent through", summary.transport
    if mailout.snoozed:
        yield "not written to", f"{count(mailout.snoozed, 'person', 'people')}: they asked for a pause"
    for reason, n in summary.suppressed.items():
        yield "suppressed", f"{count(n, 'person', 'people')}: {reason}"
    if summary.census is not None:
        for line in census_lines(summary.census):
            yield "census", line
        for row in census_table(summary.census):
            people, size = count(row["recipients"], "person", "people"), row["bytes"] / 1000
            yield "variant", f"{people}, {size:.1f} KB: {row['subject']} ({row['slices']})"
    for event, n in sorted(mailout.metrics.items()):
        if event not in CAME_BACK:
            yield event, f"{n:,}"


def identifiers(summary: Summary) -> Iterator[tuple[str, str]]:
    """What machines and support need, and nobody else reads."""
    mailout = summary.mailout
    yield "mailout", mailout.id
    yield "written in", f"{mailout.kind.value}: {mailout.ref}"
    if mailout.content_hash is not None:
        yield "content", mailout.content_hash
    if mailout.segment_filter is not None:
        yield "filter", mailout.segment_filter["hash"]


# ── The census of an article: which variants there are, for how many, and who is left out ──


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
