"""Prometheus's text format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from mailout.metrics.model import Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with all its samples; without any it is left out."""

    name: str
    type: Literal["counter", "gauge", "histogram"]
    help: str
    samples: Mapping[Sample, float] = field(default_factory=dict)


def exposition(families: Iterable[Family]) -> str:
    lines = []
    for family in families:
        if family.samples:
            lines.append(f"# HELP {family.name} {_one_line(family.help)}")
            lines.append(f"# TYPE {family.name} {family.type}")
            lines.extend(_line(*sample, value) for sample, value in family.samples.items())
    return "".join(f"{line}\n" for line in lines)


def _line(name: str, labels: str, value: float) -> str:
    number = str(int(value)) if value == int(value) else repr(value)
    return f"{name}{{{labels}}} {number}" if labels else f"{name} {number}"


def _one_line(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")
