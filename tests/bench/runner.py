"""Measures one subject after another, each in a process of its own; one that fails does not end the rest."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.rows import ROOT, Row, Subject

PATIENCE = 900.0


@dataclass(frozen=True)
class Result:
    """A row's number."""

    row: Row
    samples: Sequence[float]
    failure: str = ""
    stolen: float = 0.0  # per cent of the machine's CPU that its host gave to others meanwhile

    @property
    def value(self) -> float:
        return statistics.median(self.samples)

    @property
    def spread(self) -> tuple[float, float] | None:
        return (min(self.samples), max(self.samples)) if len(self.samples) > 1 else None

    @property
    def is_met(self) -> bool | None:
        """None: nothing is asked of it, or it could not be measured."""
        if self.failure or self.row.asked is None:
            return None
        return self.row.asked.holds(self.value)


def run_subjects(subjects: Sequence[Subject], wanted: Sequence[str], *, quick: bool) -> list[Result]:
    results = []
    for subject in subjects:
        rows = [row for row in subject.rows if not wanted or {row.name, subject.name} & set(wanted)]
        if not rows or (quick and not wanted and not subject.is_quick):
            continue
        began, before = time.monotonic(), _cpu_times()
        found, failure = _measured(subject, quick)
        stolen = _stolen(before, _cpu_times())
        print(f"{subject.name} ({time.monotonic() - began:.0f} s)", flush=True)
        for row in rows:
            if quick and not failure and row.key not in found:
                continue  # not at this size
            results.append(_result(row, found, failure, stolen))
            print(f"  {results[-1].row.what}: {_short(results[-1])}", flush=True)
    return results


def _measured(subject: Subject, quick: bool) -> tuple[Mapping[str, Any], str]:
    command = [sys.executable, "-m", "tests.bench", "--measure", subject.name, *(["--quick"] * quick)]
    try:
        ended = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return {}, f"not measured within {PATIENCE:.0f} s"
    if ended.returncode != 0:
        return {}, (ended.stderr.strip() or "it ended without a word").rpartition("\n")[2]
    found: Mapping[str, Any] = json.loads(ended.stdout.rpartition("\n{")[2].join(("{", "")))
    return found, ""


def _cpu_times() -> Sequence[int]:
    """Of all cores, as Linux counts them; nothing elsewhere."""
    file = Path("/proc/stat")
    return [int(part) for part in file.read_text().splitlines()[0].split()[1:9]] if file.exists() else []


def _stolen(before: Sequence[int], after: Sequence[int]) -> float:
    """Per cent: on a rented machine others' work can take the CPU away without being seen otherwise."""
    passed = [now - then for then, now in zip(before, after, strict=True)]
    return 100 * passed[-1] / sum(passed) if sum(passed) else 0.0


def _result(row: Row, found: Mapping[str, Any], failure: str, stolen: float) -> Result:
    value = found.get(row.key)
    if value is None:
        return Result(row, (), failure or "not measured here", stolen)
    return Result(row, value if isinstance(value, list) else [value], stolen=stolen)


def _short(result: Result) -> str:
    return result.failure or f"{result.value:.3g} {result.row.unit}".strip()
