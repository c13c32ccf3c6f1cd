"""The table, for the screen, for docs/benchmarks.md and as JSON."""

from __future__ import annotations

import json
import platform
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from os import cpu_count
from pathlib import Path
from typing import Any

from tests.bench.runner import Result

BUSY_HOST = 2.0  # per cent
HEAD = ("what", "value", "from … to", "asked", "met", "row")
INTRO = """# What things cost

One table from one run of `make bench`; `make bench ARGS=ROW` measures one row again (with `--keep` it takes
its place here, marked ↻), `make bench-quick` some of them in under two minutes. Nothing here is written by
hand; `bench.json` has the same.

Machines differ, so most rows are ratios, both sides measured in turns in one run, after warming up: the
median of five (of rates: of three), and the smallest and largest of them. What has a million rows is
measured once, freezing them three times. The provider is a stand-in for Amazon SES over HTTP on the same
machine, in a process of its own.

"""


def number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def as_rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    return [
        {
            "name": one.row.name,
            "what": one.row.what,
            "value": None if one.failure else one.value,
            "spread": one.spread,
            "unit": one.row.unit,
            "asked": str(one.row.asked) if one.row.asked else None,
            "met": one.is_met,
            "stolen": round(one.stolen, 1),
            **({"bound": one.row.bound} if one.row.bound and one.is_met is False else {}),
            **({"failure": one.failure} if one.failure else {}),
        }
        for one in results
    ]


def with_rows_again(
    order: Iterable[str], kept: Sequence[dict[str, Any]], again: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The rows of a whole run, some of them measured again since, or for the first time."""
    rows = {row["name"]: row for row in kept} | {row["name"]: {**row, "again": True} for row in again}
    return [rows[name] for name in order if name in rows]


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    asked, name = row["asked"] or "", f"`{row['name']}`{' ↻' if row.get('again') else ''}"
    if "failure" in row:
        return (row["what"], "failed", row["failure"].replace("|", "/"), asked, "", name)
    spread = row["spread"]
    return (
        row["what"],
        f"{number(row['value'])} {row['unit']}".strip(),
        f"{number(spread[0])} … {number(spread[1])}" if spread else "once",
        asked,
        {True: "yes", False: "**no**", None: ""}[row["met"]],
        name,
    )


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    lines: Iterable[tuple[str, ...]] = [HEAD, tuple("---" for _ in HEAD), *(cells(one) for one in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def machine() -> dict[str, Any]:
    return {
        "cores": cpu_count(),
        "cpu": _of(Path("/proc/cpuinfo"), "model name") or platform.processor() or platform.machine(),
        "memory_gb": round(int((_of(Path("/proc/meminfo"), "MemTotal") or "0 kB").split()[0]) / 1e6, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "versions": {name: version(name) for name in ("boto3", "polars", "prefect", "fastapi", "psycopg")},
    }


def _of(file: Path, name: str) -> str | None:
    if not file.exists():
        return None
    lines = (line.partition(":") for line in file.read_text(encoding="utf-8").splitlines())
    return next((value.strip() for key, _, value in lines if key.strip() == name), None)


def notes(rows: Sequence[Mapping[str, Any]]) -> str:
    """What holds back the rows that are not met, and which were measured while the host was busy."""
    bounds: dict[str, list[str]] = {}
    for row in rows:
        if row.get("bound"):
            bounds.setdefault(" ".join(row["bound"].split()), []).append(f"`{row['name']}`")
    lines = [f"- {', '.join(names)}: {bound}." for bound, names in bounds.items()]
    taken = [f"`{row['name']}` {row['stolen']:.0f} %" for row in rows if row.get("stolen", 0) >= BUSY_HOST]
    told = "What holds back those that are not met:\n\n" + "\n".join(lines) + "\n\n" if lines else ""
    if taken:
        told += f"The host gave this much of the machine's CPU to others meanwhile: {', '.join(taken)}.\n\n"
    return told


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    here = machine()
    versions = ", ".join(f"{name} {value}" for name, value in here["versions"].items())
    told = (
        f"Machine: {here['cores']} cores ({here['cpu']}), {here['memory_gb']} GB, {here['system']};"
        f" Python {here['python']}, SQLite {here['sqlite']}, {versions}."
    )
    return f"{INTRO}{table(rows)}\n\n{notes(rows)}{told}\n"


def as_json(rows: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps({"machine": machine(), "rows": rows}, indent=1, ensure_ascii=False) + "\n"
